"""What a process of production refuses at its start."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from cryptography.fernet import Fernet
from django.conf import settings
from psycopg import sql

from tests.edgecache.databases import ROOT, new_database, template
from tests.gate import production
from tests.ports import free_port
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

COMMAND = ("manage.py", "deliveries", "--state", "failed")
PROCESSES = {
    "web": ("-m", "gunicorn", "-c", "python:platform_site.gunicorn", "platform_site.wsgi"),
    "asgi": ("-c", "import platform_site.asgi"),
    "task worker": ("manage.py", "procrastinate", "worker"),
    "command": COMMAND,
    "brain": ("-m", "edgecache.brain"),
}
# The one that starts soonest, where any would do.
START = PROCESSES["asgi"]
REQUIRED = (
    "SECRET_KEY",
    "ZSECRET_KEYS",
    "ZJWT_SECRET",
    "ZJWT_REFRESH_SECRET",
    "ZMFA_SECRET",
    "ZCACHE_BRAIN_SECRET",
    "ZALLOWED_HOSTS",
    "ZPUBLIC_URL",
    "ZMAIL_URL",
    "ZMAIL_FROM",
)


RINGS = ("ZSECRET_KEYS", "ZJWT_SECRET", "ZJWT_REFRESH_SECRET", "ZMFA_SECRET")


class Installation:
    """A production installation, whose processes end when they refuse to start."""

    def __init__(self, folder: Path, url: str) -> None:
        self.variables = production() | {
            "DATABASE_URL": url,
            "ZSQL_CLUSTER_URL": url,
            "ZDATA_DIR": str(folder),
            "ZBIND": f"127.0.0.1:{free_port()}",
            "PATH": "/usr/bin:/bin",
        }

    def start(self, words: tuple[str, ...], **variables: str) -> "subprocess.Popen[str]":
        """Start a process."""
        return subprocess.Popen(
            [sys.executable, *words],
            cwd=ROOT,
            env=self.variables | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, words: tuple[str, ...], **variables: str) -> tuple[int, str]:
        """Run a process that ends by itself; return its status and its errors."""
        running = self.start(words, **variables)
        _, errors = running.communicate(timeout=120)
        return running.returncode, errors


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    """Return an installation with an empty control database."""
    with new_database(template("control_template")) as url:
        yield Installation(tmp_path, url)


@pytest.fixture
def bare(tmp_path: Path) -> Installation:
    """Return an installation whose database is never asked, because the settings are refused."""
    return Installation(tmp_path, f"postgresql://zonal@127.0.0.1:{free_port()}/zonal")


@pytest.mark.parametrize("process", PROCESSES)
def test_no_process_starts_without_its_settings_and_a_mistyped_one_is_named_first(
    bare: Installation, process: str
) -> None:
    missing = ("ZSECRET_KEYS",) if process == "brain" else REQUIRED
    mistyped = {"ZSECRET_KEY_FILE": "/run/secrets/x", "ZDOTDIR": "/root", "ZSH": "/bin/zsh"}
    status, errors = bare.run(PROCESSES[process], **mistyped, **dict.fromkeys(missing, ""))
    assert status == 1
    assert all(name in errors for name in missing), errors
    assert "Traceback" not in errors
    lines = errors.splitlines()
    sentence = "ZSECRET_KEY_FILE is set, but is no setting. Did you mean ZSECRET_KEYS_FILE?"
    assert sentence in "".join(lines[:2])
    assert not [line for line in lines if "ZDOTDIR" in line or "ZSH" in line]


@pytest.mark.parametrize("process", ["command", "brain"])
def test_an_empty_file_is_no_key(bare: Installation, tmp_path: Path, process: str) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    status, errors = bare.run(PROCESSES[process], ZSECRET_KEYS="", ZSECRET_KEYS_FILE=str(empty))
    assert (status, "ZSECRET_KEYS" in errors) == (1, True)


@pytest.mark.parametrize("process", ["web", "task worker"])
def test_no_process_starts_with_unsafe_settings(bare: Installation, process: str) -> None:
    status, errors = bare.run(
        PROCESSES[process],
        ZALLOWED_HOSTS="*",
        ZPUBLIC_URL="http://zonal.example.com",
        ZMAIL_URL="console:",
        ZSMS_URL="console:",
        ZSQL_CLUSTER_URL="",
        DATABASE_URL="",
        ZSQL_TRANSACTION_IDLE_S="60",
        ZSQL_TRANSACTION_LIFE_S="30",
    )
    assert status == 1
    for words in (
        "ZALLOWED_HOSTS accepts any host",
        "ZPUBLIC_URL is not https",
        "ZMAIL_URL shows mail",
        "ZSMS_URL shows messages",
        "ZSQL_CLUSTER_URL is not set",
        "DATABASE_URL is not set",
        "ZSQL_TRANSACTION_IDLE_S is above",
    ):
        assert words in errors


def test_commands_that_use_no_key_run_without_one(bare: Installation) -> None:
    unset = {name: "" for name in REQUIRED if name != "SECRET_KEY"}
    static = {"ZSTATIC_ROOT": str(ROOT / "static")}
    words = ("manage.py", "collectstatic", "--noinput", "--dry-run", "-v0")
    assert bare.run(words, **unset, **static) == (0, "")
    assert "ZSECRET_KEYS is not set" in bare.run(("manage.py", "check", "--deploy"), **unset)[1]
    assert bare.run(("manage.py", "backup", "--help"), **unset) == (0, "")


def _another(name: str) -> str:
    return Fernet.generate_key().decode() if name == "ZSECRET_KEYS" else f"{name}-{'y' * 60}"


def test_no_process_starts_with_keys_that_are_not_the_database_s(
    installation: Installation,
) -> None:
    # The first start writes the fingerprints down.
    assert installation.run(START)[0] == 0
    others = {name: _another(name) for name in RINGS}
    for process, words in PROCESSES.items():
        names = ["ZSECRET_KEYS"] if process == "brain" else list(others)
        status, errors = installation.run(words, **others)
        assert status == 1
        assert all(f"{name} lacks the key" in errors for name in names), errors
        assert not [value for value in others.values() if value in errors]
    running = installation.start(("manage.py", "doctor"), **others)
    report, _ = running.communicate(timeout=120)
    assert "FAILED   keys: ZSECRET_KEYS lacks the key" in report


def test_a_key_is_changed_with_the_former_one_behind_it(installation: Installation) -> None:
    assert installation.run(START)[0] == 0
    former = installation.variables["ZSECRET_KEYS"]
    new = Fernet.generate_key().decode()
    refused, started = 1, 0
    for keys, status in (
        (new, refused),
        (f"{new},{former}", started),
        # Rows are encrypted with the new one now.
        (former, refused),
        (f"{former},{new}", started),
        (new, refused),
        (f"{new},{former}", started),
        (new, started),
    ):
        assert installation.run(START, ZSECRET_KEYS=keys)[0] == status, keys


def test_a_lost_key_of_tokens_is_replaced_by_hand(installation: Installation) -> None:
    assert installation.run(START)[0] == 0
    other = {"ZMFA_SECRET": _another("ZMFA_SECRET")}
    assert installation.run(START, **other)[0] == 1
    replace = ("manage.py", "rotatekeys", "--replaced")
    assert installation.run((*replace, "ZSECRET_KEYS"), **other)[0] == 2
    assert installation.run((*replace, "ZMFA_SECRET"), **other)[0] == 0
    assert installation.run(START, **other)[0] == 0
    assert installation.run(START)[0] == 1


def test_of_two_first_processes_with_other_keys_one_starts(installation: Installation) -> None:
    keys = [Fernet.generate_key().decode() for _ in range(4)]
    running = [installation.start(START, ZSECRET_KEYS=key) for key in keys]
    for process in running:
        process.communicate(timeout=120)
    assert sorted(process.returncode for process in running) == [0, 1, 1, 1]


@pytest.mark.parametrize(("has_other_keys", "status"), [(True, 503), (False, 200)])
def test_a_web_server_that_started_without_the_database_compares_later(
    installation: Installation, tmp_path: Path, has_other_keys: bool, status: int
) -> None:
    assert installation.run(START)[0] == 0
    port = free_port()
    variables = {"ZBIND": f"127.0.0.1:{port}", "ZWEB_WORKERS": "1"}
    if has_other_keys:
        variables["ZSECRET_KEYS"] = Fernet.generate_key().decode()
    name = urlsplit(installation.variables["DATABASE_URL"]).path.strip("/")
    _rename(name, f"{name}_away")
    running = installation.start(PROCESSES["web"], **variables)
    try:
        wait_until(partial(_answers, port, "/healthz", 200), timeout_s=60)
        _rename(f"{name}_away", name)
        for _ in range(3):
            assert _answers(port, "/readyz", status)
    finally:
        running.terminate()
        _, errors = running.communicate(timeout=60)
    assert ("keys_differ" in errors) == has_other_keys


def test_a_web_server_that_started_without_the_database_refuses_one_of_before_the_first_release(
    installation: Installation,
) -> None:
    port, url = free_port(), installation.variables["DATABASE_URL"]
    name = urlsplit(url).path.strip("/")
    with psycopg.connect(url) as connection:
        connection.execute("DELETE FROM django_migrations WHERE app = 'audit'")
        connection.execute(
            "INSERT INTO django_migrations (app, name, applied) VALUES ('brain', 'step', now())"
        )
    _rename(name, f"{name}_away")
    running = installation.start(
        PROCESSES["web"], ZBIND=f"127.0.0.1:{port}", ZWEB_WORKERS="1", ZLOG_FORMAT="json"
    )
    try:
        wait_until(partial(_answers, port, "/healthz", 200), timeout_s=60)
        _rename(f"{name}_away", name)
        for _ in range(3):
            assert _answers(port, "/readyz", 503)
    finally:
        running.terminate()
        _, errors = running.communicate(timeout=60)
    assert "before release 0.1.0" in errors


@pytest.mark.parametrize("process", ["task worker", "brain"])
def test_a_process_that_started_without_the_database_ends_with_other_keys(
    installation: Installation, process: str
) -> None:
    assert installation.run(START)[0] == 0
    name = urlsplit(installation.variables["DATABASE_URL"]).path.strip("/")
    _rename(name, f"{name}_away")
    running = installation.start(PROCESSES[process], ZSECRET_KEYS=Fernet.generate_key().decode())
    try:
        assert running.stderr is not None
        assert "database_awaited" in next(
            line for line in running.stderr if "keys_not" in line or "awaited" in line
        )
        _rename(f"{name}_away", name)
        _, errors = running.communicate(timeout=60)
    finally:
        running.kill()
    assert (running.returncode, "ZSECRET_KEYS lacks the key" in errors) == (1, True)


def _rename(former: str, name: str) -> None:
    with psycopg.connect(settings.DATABASE_URL, autocommit=True) as connection:
        connection.execute(
            sql.SQL("ALTER DATABASE {} RENAME TO {}").format(*map(sql.Identifier, (former, name)))
        )


def _answers(port: int, path: str, status: int) -> bool:
    with suppress(OSError), closing(HTTPConnection("127.0.0.1", port, timeout=30)) as client:
        client.request("GET", path, headers={"X-Forwarded-Proto": "https"})
        return client.getresponse().status == status
    return False


@pytest.mark.parametrize("process", ["command", "brain", "task worker"])
def test_the_reason_is_what_postgresql_said(installation: Installation, process: str) -> None:
    parts = urlsplit(installation.variables["DATABASE_URL"])
    elsewhere = parts._replace(path=f"{parts.path}_elsewhere").geturl()
    installation.variables["DATABASE_URL"] = elsewhere
    running = installation.start(PROCESSES[process])
    try:
        assert running.stderr is not None
        line = next(each for each in running.stderr if "_elsewhere" in each)
    finally:
        running.kill()
        running.communicate(timeout=60)
    assert "does not exist" in line


def test_a_database_that_is_not_migrated_is_a_sentence(tmp_path: Path) -> None:
    port = free_port()
    with new_database() as url:
        installation = Installation(tmp_path, url)
        sentence = "The control database is not migrated: run `manage.py migrate`."
        assert installation.run(COMMAND) == (1, f"CommandError: {sentence}\n")
        waiting = [installation.start(PROCESSES[name]) for name in ("task worker", "brain")]
        web = installation.start(
            PROCESSES["web"],
            ZBIND=f"127.0.0.1:{port}",
            ZWEB_WORKERS="1",
            ZTRUSTED_PROXIES="127.0.0.1",
        )
        try:
            for process in waiting:
                assert process.stderr is not None
                assert "_starting" in next(process.stderr)
                assert "migrations_awaited" in next(process.stderr)
            wait_until(partial(_answers, port, "/healthz", 200), timeout_s=60)
            assert _signs_up(port) == 503
        finally:
            web.terminate()
            for process in waiting:
                process.kill()
                process.communicate(timeout=60)
            _, errors = web.communicate(timeout=60)
    assert sentence in errors
    assert "Traceback" not in errors


def _signs_up(port: int) -> int:
    with closing(HTTPConnection("127.0.0.1", port, timeout=30)) as client:
        body = (
            '{"organization": "Alice", "email": "alice@example.com", "password": "correct horse"}'
        )
        headers = {
            "Host": "zonal.example.com",
            "X-Forwarded-Proto": "https",
            "Content-Type": "application/json",
        }
        client.request("POST", "/v1/auth/signup", body, headers)
        return client.getresponse().status


@pytest.mark.parametrize("process", PROCESSES)
def test_no_process_starts_on_a_database_that_is_not_utf_8(tmp_path: Path, process: str) -> None:
    name = f"latin_{os.getpid()}_{process[:3]}"
    create = (
        "CREATE DATABASE {} ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0"
    )
    with psycopg.connect(settings.DATABASE_URL, autocommit=True) as server:
        server.execute(sql.SQL(create).format(sql.Identifier(name)))
        try:
            url = urlsplit(settings.DATABASE_URL)._replace(path=f"/{name}").geturl()
            status, errors = Installation(tmp_path, url).run(PROCESSES[process])
        finally:
            server.execute(sql.SQL("DROP DATABASE {} (FORCE)").format(sql.Identifier(name)))
    assert (status, "DATABASE_URL has the encoding LATIN1" in errors) == (1, True)


def test_an_earlier_key_is_needed_for_as_long_as_rows_are_encrypted_with_it(
    installation: Installation,
) -> None:
    first, second = (Fernet.generate_key().decode() for _ in range(2))
    for keys in (first, f"{second},{first}"):
        assert installation.run(START, ZSECRET_KEYS=keys)[0] == 0
    url = installation.variables["DATABASE_URL"]
    secret = Fernet(first.encode()).encrypt(b"x").decode()
    with psycopg.connect(url, autocommit=True) as database:
        database.execute(INSERT, [secret])
        # The brain compares by itself, all others alike.
        for words in (START, PROCESSES["brain"]):
            status, errors = installation.run(words, ZSECRET_KEYS=second)
            assert (status, "ZSECRET_KEYS lacks the key" in errors) == (1, True), words
        # The order does not matter, and what was changed back was used as well.
        assert installation.run(START, ZSECRET_KEYS=f"{first},{second}")[0] == 0
        database.execute("UPDATE sqlgateway_cluster SET url_secret = %s", [_sealed(second)])
        assert installation.run(START, ZSECRET_KEYS=first)[0] == 1
        assert installation.run(START, ZSECRET_KEYS=f"{second},{first}")[0] == 0
        assert installation.run(START, ZSECRET_KEYS=second)[0] == 0


INSERT = """
INSERT INTO sqlgateway_cluster (name, url_secret, state, capacity, flags, private_paths,
    server_version, system_identifier, created_at)
VALUES ('one', %s, 'open', 10, '[]', '[]', 180007, '', now())
"""


def _sealed(key: str) -> str:
    return Fernet(key.encode()).encrypt(b"x").decode()


def test_in_development_other_keys_are_refused_as_well(installation: Installation) -> None:
    given = {"PRODUCTION": "", "ZSECRET_KEYS": Fernet.generate_key().decode()}
    with psycopg.connect(installation.variables["DATABASE_URL"], autocommit=True) as database:
        database.execute(INSERT, [_sealed(Fernet.generate_key().decode())])
    status, errors = installation.run(PROCESSES["web"], **given)
    assert (status, "ZSECRET_KEYS lacks the key" in errors) == (1, True)
