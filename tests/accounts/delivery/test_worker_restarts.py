"""A task worker is replaced while it sends mail: each mail is sent, and none twice."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.db import connection

from accounts.delivery import notices
from accounts.models import Delivery, User
from tests.accounts.delivery.support import Mailbox, smtp_server
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

# It imports the whole platform, beside whatever else this machine does.
START_S = 300.0
MAILS = 60


@pytest.fixture
def clean_queue() -> Iterator[None]:
    """Leave no job behind: the queue's tables are not flushed with ours."""
    yield
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE procrastinate_jobs, procrastinate_workers CASCADE")


@contextmanager
def worker(smtp_port: int) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a task worker, as its unit does, on the test's database."""
    name = str(connection.settings_dict["NAME"])
    environment = os.environ | {
        "DATABASE_URL": urlsplit(settings.DATABASE_URL)._replace(path=f"/{name}").geturl(),
        "ZSECRET_KEYS": ",".join(settings.SECRET_KEYS),
        "ZMAIL_URL": f"smtp://127.0.0.1:{smtp_port}?tls=none",
        "ZMAIL_FROM": "zonal@example.com",
    }
    # The unit gives tasks ten seconds; how fast this machine is does not matter here.
    words = ("--concurrency=4", "--shutdown-graceful-timeout=600")
    command = [sys.executable, "manage.py", "procrastinate", "worker", *words]
    process = subprocess.Popen(command, env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def unsent() -> int:
    """Return how many mails have not left."""
    return Delivery.unscoped.exclude(state="sent").count()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("clean_queue")
def test_a_task_worker_is_replaced_and_each_mail_is_sent_once(alice: User) -> None:
    mailbox = Mailbox()
    with smtp_server(mailbox) as port:
        for _ in range(MAILS):
            notices.queue(alice, "password_changed")
        with worker(port) as first:
            wait_until(lambda: unsent() <= MAILS - 5, timeout_s=START_S)
            first.terminate()
            # Jobs that arrive in the meantime are left for the next worker.
            for _ in range(MAILS):
                notices.queue(alice, "password_changed")
            assert first.wait(START_S) == 0
        # What it had begun is done, and what it had not is there.
        assert not Delivery.unscoped.filter(state="sending").exists()
        assert len(mailbox.mails) == 2 * MAILS - unsent()
        with worker(port):
            wait_until(lambda: not unsent(), timeout_s=START_S)
    assert len(mailbox.mails) == 2 * MAILS
    assert set(Delivery.unscoped.values_list("attempts", flat=True)) == {1}
