"""A brain's start, refusals to start, and stop; other brains are not affected."""

import contextlib
import http.client
import ipaddress
import os
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from django.conf import settings as platform_settings
from pytest_django import Settings

from edgecache.brain.command import refusal
from edgecache.protocol.credentials import authorization
from edgecache.protocol.names import worker_path
from tests.commands import help_of
from tests.edgecache.brain.support import CUT, ClusterRows, ask, register
from tests.edgecache.cluster import Cluster
from tests.edgecache.conftest import ROOT
from tests.edgecache.forks import fork_server
from tests.ports import free_port
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

SECRET = "a secret of more than thirty-two characters"


@dataclass(frozen=True)
class Ended:
    """A brain that has ended."""

    returncode: int
    stderr: str


def environment_of(tmp_path: Path, changes: dict[str, str]) -> dict[str, str]:
    """Return the environment of a brain on ports of its own, without a database."""
    ports = ("ZBRAIN_PORT", "ZBRAIN_S3_PORT", "ZBRAIN_WORKER_PORT")
    chosen = {
        "ZDATA_DIR": str(tmp_path),
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
        "ZCACHE_BRAIN_SECRET": SECRET,
        **{name: str(free_port()) for name in ports},
    }
    return os.environ | chosen | changes


def run(tmp_path: Path, *, sockets: Sequence[socket.socket] = (), **changes: str) -> Ended:
    """Run a brain until it ends. sockets: on which it listens."""
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as errors:
        streams = {1: said.fileno(), 2: errors.fileno()}
        environment = environment_of(tmp_path, changes)
        brain = fork_server().fork(["edgecache.brain"], environment, streams, sockets=sockets)
        try:
            code = brain.wait(60)
        finally:
            brain.kill()
        errors.seek(0)
        return Ended(code, errors.read().decode())


def test_all_three_ports_respond(shared_bare_cluster: Cluster) -> None:
    for port in (shared_bare_cluster.internal_port, shared_bare_cluster.worker_port):
        said = ask(f"http://127.0.0.1:{port}/health")
        assert (said.status, said.body["status"]) == (200, "ok")
    with socket.create_connection(("127.0.0.1", shared_bare_cluster.port)) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 403")


def test_a_brain_with_a_short_secret_does_not_start(tmp_path: Path) -> None:
    ended = run(tmp_path, ZCACHE_BRAIN_SECRET="short")
    assert ended.returncode == 1
    said = "zonal: ZCACHE_BRAIN_SECRET must have at least 32 characters in each secret."
    assert ended.stderr.strip() == said


def test_in_production_a_brain_needs_the_platform_s_keys(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = replace(settings.BRAIN, secrets=(SECRET,), is_production=True)
    monkeypatch.setenv("ZSECRET_KEYS", "one")
    assert refusal(chosen) == ""
    monkeypatch.setenv("ZSECRET_KEYS", "")
    assert "ZSECRET_KEYS" in refusal(chosen)


def test_in_production_a_brain_does_not_accept_worker_credentials_without_tls(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZSECRET_KEYS", "one")
    public = replace(settings.BRAIN.workers, address="203.0.113.7")
    chosen = replace(settings.BRAIN, secrets=(SECRET,), is_production=True, workers=public)
    assert "ZBRAIN_TLS_CERT" in refusal(chosen)


def test_a_port_in_use_is_reported_with_its_setting(tmp_path: Path, database_url: str) -> None:
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()
        port = stranger.getsockname()[1]
        ended = run(tmp_path, DATABASE_URL=database_url, ZBRAIN_WORKER_PORT=str(port))

    assert ended.returncode == 1
    assert f"Port {port} is in use by another program." in ended.stderr
    assert "ZBRAIN_WORKER_PORT=" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_sockets_that_listen_elsewhere_than_the_settings_say_are_refused(
    tmp_path: Path, database_url: str
) -> None:
    """The workers' API might be reached from outside, without TLS."""
    with socket.create_server(("0.0.0.0", 0)) as listening:  # noqa: S104 - refused
        port = listening.getsockname()[1]
        ended = run(
            tmp_path,
            sockets=[listening],
            DATABASE_URL=database_url,
            ZBRAIN_WORKER_PORT=str(port),
        )
    assert ended.returncode == 1
    assert f"given listen at 0.0.0.0:{port}, and" in ended.stderr
    assert f"ZBRAIN_WORKER_PORT=127.0.0.1:{port}" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_help_describes_the_brain() -> None:
    for word in ("8081", "9000", "8083", "ZCACHE_BRAIN_SECRET", "Several brains"):
        assert word in help_of("runbrain")


def test_the_management_command_runs_the_brain_which_needs_a_secret(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "manage.py", "runbrain"],
        cwd=ROOT,
        env=environment_of(tmp_path, {"ZCACHE_BRAIN_SECRET": ""}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    assert "The brain needs ZCACHE_BRAIN_SECRET" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_data_directory_that_cannot_be_used_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("of another program")
    ended = run(tmp_path, ZDATA_DIR=str(tmp_path / "file"))
    assert ended.returncode == 1
    assert "It is in ZDATA_DIR." in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_a_certificate_that_cannot_be_used_is_reported(tmp_path: Path) -> None:
    (tmp_path / "cert").write_text("no certificate")
    ended = run(
        tmp_path, ZBRAIN_TLS_CERT=str(tmp_path / "cert"), ZBRAIN_TLS_KEY=str(tmp_path / "cert")
    )
    assert ended.returncode == 1
    assert "ZBRAIN_TLS_CERT and ZBRAIN_TLS_KEY cannot be used" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_sigterm_finishes_running_requests_and_ends_the_lease(
    start: Callable[..., Cluster], database_url: str
) -> None:
    brain = start()
    rows = ClusterRows(database_url)
    assert rows.value("SELECT count(*) FROM brain_braininstance") == 1
    # A request is running: its body is incomplete.
    with socket.create_connection(("127.0.0.1", brain.internal_port)) as connection:
        body = b'{"organization_id": 1, "environment_pk": 1, "all": true}'
        head = f"POST /v1/purge HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {brain.secret}\r\n"
        connection.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body[:5])
        # Only connections accepted before the signal count as running.
        assert ask(f"http://127.0.0.1:{brain.internal_port}/health").status == 200
        brain.brain.send_signal(signal.SIGTERM)
        connection.sendall(body[5:])
        answer = connection.recv(1000)

    assert brain.brain.wait(20) == 0
    assert answer.startswith(b"HTTP/1.1 200")
    assert rows.value("SELECT count(*) FROM brain_braininstance") == 0


def test_a_brain_without_its_database_reports_it(
    start: Callable[..., Cluster], database_url: str
) -> None:
    brain = start()
    rows = ClusterRows(platform_settings.DATABASE_URL)
    name = urlsplit(database_url).path.removeprefix("/")
    rows.run(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
    try:
        rows.run(CUT, name)
        # What it asked last is true for a second.
        wait_until(lambda: ask(f"http://127.0.0.1:{brain.internal_port}/health").status == 503)
        assert ask(f"http://127.0.0.1:{brain.internal_port}/health").code == "database_away"
    finally:
        rows.run(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
    wait_until(lambda: ask(f"http://127.0.0.1:{brain.internal_port}/health").status == 200)


def test_the_worker_port_uses_tls_with_a_certificate(
    start: Callable[..., Cluster], tmp_path: Path
) -> None:
    certificate, key = certificate_for("127.0.0.1", tmp_path)
    brain = start(variables={"ZBRAIN_TLS_CERT": str(certificate), "ZBRAIN_TLS_KEY": str(key)})
    node = register(brain)
    trusting = ssl.create_default_context(cafile=str(certificate))

    def beat(context: ssl.SSLContext | None) -> int:
        port, path = brain.worker_port, worker_path(node.id, "heartbeat")
        connection = (
            http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=context)
            if context
            else http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        )
        with contextlib.closing(connection):
            headers = {"Authorization": authorization(node.id, node.secret)}
            connection.request("POST", path, b"{}", headers)
            return connection.getresponse().status

    assert beat(trusting) == 400
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        beat(None)


def certificate_for(address: str, folder: Path) -> tuple[Path, Path]:
    """Create a self-signed certificate for an address, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, address)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]),
            critical=False,
        )
        .sign(key, SHA256())
    )
    files = (folder / "cert.pem", folder / "key.pem")
    files[0].write_bytes(made.public_bytes(Encoding.PEM))
    files[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return files
