"""The previous release's processes work on the tables of this one (expand and contract).

``previous_release.txt`` has its commit. During an upgrade, and after a step back, old code runs on
new tables.
"""

import http.client
import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.db import connection

from accounts.models import User
from outbox.models import Delivery, WebhookDelivery
from tests.edgecache.cluster import Cluster, Keys
from tests.edgecache.conftest import connect
from tests.ports import free_port
from tests.sqlgateway import conftest as databases
from tests.waiting import wait_until
from tests.web_process import ROOT, Web, web_process

pytestmark = pytest.mark.slow

START_S = 120.0
PREVIOUS = Path(__file__).with_name("previous_release.txt")
EMAIL, PASSWORD = "dora@example.com", "a long sentence of Dora's"


@pytest.fixture
def previous(tmp_path: Path) -> Path:
    """Return a folder with the previous release's code.

    Fails where git does not have its commit; skipped only where there is no history at all.
    """
    git = ROOT / ".git"
    if not git.exists() or (git / "shallow").exists():
        pytest.skip("The previous release is in git's history, and there is none.")
    commit, folder = PREVIOUS.read_text().strip(), tmp_path / "previous"
    command = ["git", "archive", "--format=tar", commit]
    archive = subprocess.run(command, cwd=ROOT, check=False, capture_output=True)
    assert archive.returncode == 0, f"{PREVIOUS.name} is wrong: {archive.stderr.decode()}"
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


class PreviousBrain(Cluster):
    """A brain of the previous release."""

    code: Path

    def _run(
        self, log: str, command: list[str], environment: dict[str, str]
    ) -> "subprocess.Popen[bytes]":
        with (self.folder / log).open("ab") as output:
            return subprocess.Popen(
                [sys.executable, *command],
                cwd=self.code,
                env=environment,
                stdout=output,
                stderr=output,
            )


def database_url() -> str:
    """Return the URL of the test's database, which has this release's tables."""
    name = str(connection.settings_dict["NAME"])
    return urlsplit(settings.DATABASE_URL)._replace(path=f"/{name}").geturl()


@contextmanager
def task_worker(code: Path, mails: Path) -> Iterator[None]:
    environment = os.environ | {
        "DATABASE_URL": database_url(),
        "ZSECRET_KEYS": ",".join(settings.SECRET_KEYS),
        "ZMAIL_URL": f"file://{mails}",
    }
    command = [sys.executable, "manage.py", "procrastinate", "worker"]
    process = subprocess.Popen(command, cwd=code, env=environment)
    try:
        yield
        assert process.poll() is None
    finally:
        process.terminate()
        process.wait(START_S)


@contextmanager
def processes(code: Path, folder: Path) -> Iterator[tuple[Web, PreviousBrain]]:
    """Run web, brain and task worker of a release."""
    brain = PreviousBrain(folder, database_url(), ",".join(settings.SECRET_KEYS), workers=0)
    brain.code = code
    cache = {
        "ZCACHE_ENABLED": "true",
        "ZCACHE_BRAIN_URL": f"http://127.0.0.1:{brain.internal_port}",
        "ZCACHE_BRAIN_S3_URL": brain.url,
        "ZCACHE_BRAIN_SECRET": brain.secret,
    }
    try:
        brain.start()
        with web_process(folder, code, **cache) as web, task_worker(code, folder / "mails"):
            yield web, brain
    finally:
        brain.stop()


def ask(web: Web, method: str, path: str, body: Any = None, token: str = "") -> Any:
    """Send a request; return the body of a success."""
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    with closing(http.client.HTTPConnection("127.0.0.1", web.port, timeout=60)) as client:
        client.request(method, path, json.dumps(body) if body else None, headers)
        answer = client.getresponse()
        content = answer.read()
    assert answer.status in {200, 201, 202}, (path, answer.status, content)
    return json.loads(content)


@pytest.fixture
def clean() -> Iterator[None]:
    """Take back what other processes have made: tenants' databases, and jobs."""
    yield
    databases._take_back()
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE procrastinate_jobs, procrastinate_workers CASCADE")


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("clean")
def test_the_previous_release_works_on_the_tables_of_this_one(
    previous: Path, tmp_path: Path
) -> None:
    (tmp_path / "mails").mkdir()
    with processes(previous, tmp_path) as (web, brain):
        person = {"email": EMAIL, "password": PASSWORD}
        ask(web, "POST", "/v1/auth/signup", person | {"organization": "Dora's"})
        # The task worker sends the mail with the code.
        wait_until(lambda: Delivery.objects.filter(state="sent").exists(), timeout_s=START_S)
        User.objects.filter(email=EMAIL).update(email_verified_at="2026-01-01T00:00:00Z")

        token = ask(web, "POST", "/v1/auth/login", person)["access_token"]
        assert ask(web, "GET", "/v1/whoami", token=token)["email"] == EMAIL
        ask(web, "POST", "/v1/sql", {"query": "CREATE TABLE notes (id int)"}, token)
        key = {"name": "import", "role": "admin"}
        api_key = ask(web, "POST", "/v1/api-keys", key, token)["key"]
        insert = {"query": "INSERT INTO notes VALUES (7)"}
        ask(web, "POST", "/v1/sql", insert, api_key)
        found = ask(web, "POST", "/v1/sql", {"query": "SELECT id FROM notes"}, token)
        assert found["rows"] == [{"id": 7}]

        # The task worker tries to send the event, and notes that.
        hook = {"url": f"http://127.0.0.1:{free_port()}/", "events": ["member.added"]}
        webhook = ask(web, "POST", "/v1/webhooks", hook, token)["id"]
        event = ask(web, "POST", f"/v1/webhooks/{webhook}/test", token=token)["id"]
        attempted = WebhookDelivery.objects.filter(pk=event, state="queued", attempts=1)
        wait_until(attempted.exists, timeout_s=START_S)
        # This release's goes on with it.
        assert attempted.get().attempts_allowed == 8

        ask(web, "POST", "/v1/cache/buckets", {"name": "pictures"}, token)
        made = ask(web, "POST", "/v1/cache/access-keys", {"access": "write"}, token)
        keys = Keys(0, 0, made["access_key_id"], made["secret_access_key"])
        with closing(connect(keys, brain.url)) as s3:
            s3.put_object(Bucket="pictures", Key="k", Body=b"body")
            assert s3.get_object(Bucket="pictures", Key="k")["Body"].read() == b"body"


def test_the_previous_release_is_a_commit_of_this_history(previous: Path) -> None:
    assert (previous / "pyproject.toml").is_file()
