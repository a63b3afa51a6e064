"""A task worker is replaced while it sends mail: each mail is sent, and none twice."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from django.conf import settings
from django.db import connection
from psycopg import sql

from accounts import notices
from accounts.models import User
from outbox.models import Delivery
from tests.common.database.read_only import read_only_database
from tests.outbox.messages.support import Mailbox, smtp_server
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

# It imports the whole platform, beside whatever else this machine does.
START_S = 300.0
MAILS = 60
CUT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"


@pytest.fixture
def clean_queue() -> Iterator[None]:
    """Leave no job behind: the queue's tables are not flushed with ours."""
    yield
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE procrastinate_jobs, procrastinate_workers CASCADE")


@contextmanager
def worker(smtp_port: int, log: Path = Path(os.devnull)) -> Iterator["subprocess.Popen[bytes]"]:
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
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def unsent() -> int:
    """Return how many mails have not left."""
    return Delivery.objects.exclude(state="sent").count()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("clean_queue")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP])
def test_a_task_worker_is_replaced_and_each_mail_is_sent_once(
    alice: User, how: signal.Signals
) -> None:
    mailbox = Mailbox()
    with smtp_server(mailbox) as port:
        for _ in range(MAILS):
            notices.queue_notice(alice, "password_changed")
        with worker(port) as first:
            wait_until(lambda: unsent() <= MAILS - 5, timeout_s=START_S)
            first.send_signal(how)
            # Jobs that arrive in the meantime are left for the next worker.
            for _ in range(MAILS):
                notices.queue_notice(alice, "password_changed")
            assert first.wait(START_S) == 0
        # What it had begun is done, and what it had not is there.
        assert not Delivery.objects.filter(state="sending").exists()
        assert len(mailbox.mails) == 2 * MAILS - unsent()
        with worker(port):
            wait_until(lambda: not unsent(), timeout_s=START_S)
    assert len(mailbox.mails) == 2 * MAILS
    assert set(Delivery.objects.values_list("attempts", flat=True)) == {1}


@contextmanager
def database_away() -> Iterator[None]:
    """Refuse connections to the test's database, and end those that there are."""
    name = str(connection.settings_dict["NAME"])
    connection.close()
    elsewhere = urlsplit(settings.DATABASE_URL)._replace(path="/postgres").geturl()
    with psycopg.connect(elsewhere, autocommit=True) as administrator:
        allow = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")
        administrator.execute(allow.format(sql.Identifier(name), sql.SQL("false")))
        try:
            administrator.execute(CUT, [name])
            yield
        finally:
            administrator.execute(allow.format(sql.Identifier(name), sql.SQL("true")))


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("clean_queue")
def test_a_task_worker_outlasts_its_database(alice: User, tmp_path: Path) -> None:
    mailbox, log = Mailbox(), tmp_path / "log"
    with smtp_server(mailbox) as port, worker(port, log) as running:
        notices.queue_notice(alice, "password_changed")
        wait_until(lambda: not unsent(), timeout_s=START_S)
        [(number,)] = workers()
        with database_away():
            wait_until(lambda: "task_worker_database_lost" in log.read_text(), timeout_s=START_S)
            assert running.poll() is None
        notices.queue_notice(alice, "password_changed")
        wait_until(lambda: not unsent(), timeout_s=START_S)
        wait_until(lambda: "task_worker_database_back" in log.read_text(), timeout_s=START_S)
        # It is the same worker, and it listens again.
        assert workers() == [(number,)]
        wait_until(listens, timeout_s=START_S)
        running.terminate()
        assert running.wait(START_S) == 0
    assert len(mailbox.mails) == 2
    assert tries() == [("succeeded", 1)]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("clean_queue")
def test_no_job_runs_on_a_connection_that_was_cut(alice: User) -> None:
    mailbox = Mailbox()
    with smtp_server(mailbox) as port, worker(port):
        for _ in range(3):
            for _ in range(8):
                notices.queue_notice(alice, "password_changed")
            # Each is done at its first try.
            wait_until(lambda: tries() == [("succeeded", 1)], timeout_s=START_S)
            cut_others()
    assert len(mailbox.mails) == 24


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("clean_queue")
def test_a_task_worker_outlasts_a_database_that_takes_no_writes(
    alice: User, tmp_path: Path
) -> None:
    mailbox, log = Mailbox(), tmp_path / "log"
    with smtp_server(mailbox) as port, ExitStack() as stack:
        with read_only_database():
            running = stack.enter_context(worker(port, log))
            wait_until(lambda: "task_worker_database_lost" in log.read_text(), timeout_s=START_S)
            # It waits, and does not end.
            assert running.poll() is None
        notices.queue_notice(alice, "password_changed")
        wait_until(lambda: not unsent(), timeout_s=START_S)
        with read_only_database():
            before = log.read_text()
            cut_others()
            wait_until(
                lambda: "task_worker_database_lost" in log.read_text().removeprefix(before),
                timeout_s=60,
            )
        # The connections that were made meanwhile are replaced.
        notices.queue_notice(alice, "password_changed")
        wait_until(lambda: not unsent(), timeout_s=START_S)
        assert running.poll() is None


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("clean_queue")
def test_a_task_worker_that_another_one_took_for_dead_goes_on(alice: User) -> None:
    mailbox = Mailbox()
    with smtp_server(mailbox) as port, worker(port) as running:
        wait_until(workers, timeout_s=START_S)
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM procrastinate_workers")
        notices.queue_notice(alice, "password_changed")
        wait_until(lambda: not unsent(), timeout_s=START_S)
        assert running.poll() is None
        assert len(workers()) == 1


def cut_others() -> None:
    """End all connections to the test's database but this one."""
    with connection.cursor() as cursor:
        name = connection.settings_dict["NAME"]
        cursor.execute(f"{CUT} AND pid <> pg_backend_pid()", [name])


def workers() -> list[tuple[int]]:
    """Return the ids of the queue's workers."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM procrastinate_workers")
        return list(cursor.fetchall())


def listens() -> bool:
    """True if a worker listens for jobs."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT FROM pg_stat_activity WHERE datname = current_database()"
            " AND query LIKE 'LISTEN%'"
        )
        return bool(cursor.fetchall())


def tries() -> list[tuple[str, int]]:
    """Return status and number of tries of the jobs that send mail."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT status::text, attempts FROM procrastinate_jobs WHERE task_name = %s",
            ["outbox.messages.deliver"],
        )
        return list(cursor.fetchall())
