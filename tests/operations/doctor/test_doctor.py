"""``manage.py doctor`` names what is wrong, and says what to do."""

import datetime
import json
import os
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from socket import create_server
from typing import Any

import pytest
import time_machine
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from django.db import connection
from pytest_django.fixtures import Settings

from accounts.models import User
from accounts.tokens import signing
from audit import trail
from edgecache.brain.conf.stores import StoreSettings
from operations.audit_tags import OperationTag
from outbox.messages import queue
from outbox.models import Delivery
from tests.commands import facts, run
from tests.edgecache.api.brain import ScriptedBrain
from tests.operations.doctor.support import findings, node
from tests.outbox.messages.support import Mailbox, smtp_options, smtp_server
from tests.ports import free_port

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
SMTP = "django.core.mail.backends.smtp.EmailBackend"


def test_a_healthy_platform_passes() -> None:
    report = facts("doctor")
    levels = {one["subject"]: one["level"] for one in report["findings"]}
    subjects = {
        "backups",
        "cache",
        "clock",
        "clusters",
        "database",
        "deliveries",
        "disk",
        "keys",
        "mail",
    }
    subjects |= {"migrations", "passkeys", "programs", "queue", "settings", "sms", "tls"}
    subjects |= {"proxy", "webhooks"}
    assert set(levels) == subjects
    assert report["failed"] == 0
    assert "OK       queue: A task worker runs" in run("doctor")


def test_a_missing_task_worker_fails() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM procrastinate_workers")
    [(level, message, advice)] = findings("queue", is_healthy=False)
    assert (level, message) == ("failed", "No task worker has reported.")
    assert "procrastinate worker" in advice


def test_a_relay_is_asked_for_a_connection(settings: Settings) -> None:
    settings.EMAIL_BACKEND = SMTP
    with smtp_server(Mailbox()) as port:
        settings.MAIL_OPTIONS = smtp_options(port)
        assert findings("mail", is_healthy=True)[0][0] == "ok"
    settings.MAIL_OPTIONS = smtp_options(free_port())
    [(level, message, _)] = findings("mail", is_healthy=False)
    assert level == "failed"
    assert "Connection refused" in message


def test_failed_messages_are_counted(alice: User) -> None:
    code: dict[str, str | int | bool | None] = {"code": "493817", "purpose": "to sign in"}
    code["minutes"] = 10
    sent = queue.send_mail(alice.email, "email_code", code, organization_id=alice.organization_id)
    Delivery.objects.filter(pk=sent.pk).update(state=Delivery.State.FAILED)
    [(level, message, advice)] = findings("deliveries", is_healthy=True)
    assert (level, message) == ("warning", "1 messages of the last day could not be sent.")
    assert "--retry-failed" in advice


def test_old_and_incomplete_backups_are_named(settings: Settings) -> None:
    settings.BACKUP = replace(settings.BACKUP, store=StoreSettings(url="file:///backups"))
    assert findings("backups", is_healthy=False)[0][1] == "There has never been a backup."
    for kind, failed, level in (("platform", 0, "ok"), ("platform", 2, "warning")):
        data = {"kind": kind, "failed": failed}
        trail.add(None, OperationTag.CLI_BACKUP_CREATE, data=data)
        assert findings("backups", is_healthy=True)[0][0] == level
    with time_machine.travel(datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=3)):
        trail.add(None, OperationTag.CLI_BACKUP_CREATE, data={"kind": "environment", "failed": 0})
        [(level, message, _), _] = findings("backups", is_healthy=False)
    assert (level, message) == ("failed", "The last backup was made 72 hours ago.")


def test_a_restore_must_be_tried_each_quarter(settings: Settings) -> None:
    settings.BACKUP = replace(settings.BACKUP, store=StoreSettings(url="file:///backups"))
    trail.add(None, OperationTag.CLI_BACKUP_CREATE, data={"kind": "platform", "failed": 0})
    now = datetime.datetime.now(datetime.UTC)

    level, message, advice = findings("backups", is_healthy=True)[1]
    assert (level, message) == ("warning", "No restore was ever tried.")
    assert "--drilled" in advice
    for days, wanted in (
        (101, ("warning", "No restore was tried for 101 days.")),
        (99, ("ok", "A restore was tried 99 days ago.")),
    ):
        with time_machine.travel(now - datetime.timedelta(days=days), tick=False):
            trail.add(None, OperationTag.CLI_BACKUP_DRILL, data={"kind": "platform"})
        assert findings("backups", is_healthy=True)[1][:2] == wanted


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_wrong_clock_is_named(hours: int) -> None:
    then = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=hours)
    with time_machine.travel(then, tick=False):
        [(level, message, advice)] = findings("clock", is_healthy=False)
    assert level == "failed"
    assert message.startswith("This machine's clock is 3")
    assert "NTP" in advice


def test_the_duration_of_a_query_does_not_count_as_a_difference_of_clocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nor is the age of the transaction, which now() would count."""
    monkeypatch.setattr("operations.doctor.databases.MAX_SKEW_S", 0.0)
    [(level, message, _)] = findings("clock", is_healthy=True)
    assert (level, message) == ("ok", "0.0 s from the database's.")


def test_passkeys_must_work_at_the_public_address(settings: Settings) -> None:
    settings.TWOFACTOR = replace(settings.TWOFACTOR, webauthn_origins=("https://old.example.com",))
    [(level, _, advice)] = findings("passkeys", is_healthy=False)
    assert level == "failed"
    assert "ZWEBAUTHN_ORIGINS" in advice


def test_an_absent_brain_and_offline_nodes_are_named(brain: ScriptedBrain) -> None:
    brain.say("GET /v1/nodes", 200, {"nodes": [node(), node("offline")]})
    said = ("warning", "1 of 2 approved nodes are online.")
    assert findings("cache", is_healthy=True)[0][:2] == said
    brain.say("GET /v1/nodes", 200, {"nodes": [node("offline")]})
    assert findings("cache", is_healthy=False)[0][0] == "failed"
    brain.say("GET /v1/nodes", 403, {})
    [(level, _, advice)] = findings("cache", is_healthy=False)
    assert level == "failed"
    assert "ZCACHE_BRAIN_SECRET" in advice


def test_a_brain_without_nodes_serves_by_itself(brain: ScriptedBrain) -> None:
    brain.say("GET /v1/nodes", 200, {"nodes": []})
    [(level, message, advice)] = findings("cache", is_healthy=True)
    assert (level, "no node is registered" in message) == ("skipped", True)
    assert "docs/cache-operations.md" in advice
    brain.say("GET /v1/nodes", 200, {"nodes": [node("pending", status="pending")]})
    [(level, message, advice)] = findings("cache", is_healthy=True)
    assert (level, message) == ("warning", "The brain answers. None of 1 nodes is approved.")
    assert "manage.py cachenodes" in advice


def test_nodes_of_others_are_no_warning(brain: ScriptedBrain) -> None:
    """Anybody can register a node that never runs, and only its operator can start one."""
    waiting = node("pending", status="pending", organization_id=7)
    theirs = node("offline", organization_id=7)
    brain.say("GET /v1/nodes", 200, {"nodes": [node(), waiting, theirs]})
    [(level, message, _)] = findings("cache", is_healthy=True)
    assert level == "ok"
    assert message.endswith("1 of 2 approved nodes are online. The rest are other operators'.")


def test_retired_keys_should_be_removed(settings: Settings) -> None:
    ring = (*settings.ACCOUNTS.access_keys, "a-key-of-last-year")
    dates = {"a-key-of-last-year": datetime.date(2025, 1, 1)}
    settings.ACCOUNTS = replace(settings.ACCOUNTS, access_keys=ring, key_retirements=dates)
    found = findings("keys", is_healthy=True)
    message = f"An earlier key of {signing.ROTATED_SETTINGS[0]} has retired."
    assert ("warning", message, "Remove it from the setting.") in found
    assert "a-key-of-last-year" not in run("doctor")


def test_a_lost_database_leaves_the_rest_of_the_report(tmp_path: Path) -> None:
    away = {"DATABASE_URL": f"postgresql://x@127.0.0.1:{free_port()}/x"}
    ended = subprocess.run(
        [sys.executable, "manage.py", "doctor", "--json"],
        env=os.environ | away | {"ZDATA_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1, ended.stderr
    found = {one["subject"]: one for one in json.loads(ended.stdout)["error"]["findings"]}
    assert "Connection refused" in found["database"]["message"]
    assert found["queue"]["level"] == "skipped"
    assert found["disk"]["level"] in {"ok", "warning"}


def certificate(folder: Path, *, days: int) -> Path:
    """Return a file with a certificate of localhost and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=days, hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    encoding, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    file = folder / "certificate.pem"
    file.write_bytes(made.public_bytes(encoding) + key.private_bytes(encoding, form, plain))
    return file


@contextmanager
def tls_server(file: Path, answer: str = "") -> Iterator[int]:
    """Run a server that completes handshakes, and answers a request; return its port."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file)
    with create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    taken, _ = server.accept()
                except OSError:
                    return
                with taken:
                    try:
                        with context.wrap_socket(taken, server_side=True) as secured:
                            if answer and secured.recv(4096):
                                port = server.getsockname()[1]
                                secured.sendall(answer.replace("PORT", str(port)).encode())
                    except OSError:
                        continue

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(2)
    thread.join(5)


@pytest.mark.parametrize(
    ("days", "is_trusted", "level", "advice"),
    [
        (5, True, "warning", "why it was not renewed"),
        (60, True, "ok", ""),
        (60, False, "failed", "SSL_CERT_FILE"),
        (-1, True, "failed", "Renew it."),
    ],
)
def test_the_certificate_of_the_public_address_is_checked(
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    days: int,
    is_trusted: Any,
    level: str,
    advice: str,
) -> None:
    file = certificate(tmp_path, days=days)
    if is_trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with tls_server(file) as port:
        settings.PUBLIC_URL = f"https://localhost:{port}"
        origins = (settings.PUBLIC_URL,)
        settings.TWOFACTOR = replace(settings.TWOFACTOR, webauthn_origins=origins)
        [found] = findings("tls", is_healthy=level != "failed")
    assert (found[0], advice in found[2]) == (level, True)


@pytest.mark.parametrize(
    ("answer", "level"),
    [
        ("301 Moved Permanently\r\nLocation: https://localhost:PORT/\r\n\r\n", "failed"),
        ("400 Bad Request\r\n\r\nThe proxy must send X-Forwarded-Proto.", "failed"),
        ("302 Found\r\nLocation: https://localhost:PORT/console/\r\n\r\n", "ok"),
        ("200 OK\r\n\r\n", "ok"),
    ],
)
def test_a_proxy_that_does_not_name_the_scheme_is_found(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: str, level: str
) -> None:
    file = certificate(tmp_path, days=60)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    settings.SECURE_SSL_REDIRECT = True
    with tls_server(file, f"HTTP/1.1 {answer}") as port:
        settings.PUBLIC_URL = f"https://localhost:{port}"
        origins = (settings.PUBLIC_URL,)
        settings.TWOFACTOR = replace(settings.TWOFACTOR, webauthn_origins=origins)
        [found] = findings("proxy", is_healthy=level != "failed")
    assert found[0] == level
