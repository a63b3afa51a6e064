"""HTTPS on the worker's own port and in its calls to the brain."""

import datetime
import http.client
import ssl
from collections.abc import Callable
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from edgecache.protocol.names import TICKET_HEADER, object_path
from edgecache.protocol.tickets import TicketKind
from tests.edgecache.worker.brain import FakeBrain
from tests.edgecache.worker.running import Worker, name

pytestmark = pytest.mark.slow

CONTENT = b"over tls" * 50_000


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """Return a certificate for 127.0.0.1 and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "worker")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = tmp_path / "cert.pem", tmp_path / "key.pem"
    files[0].write_bytes(made.public_bytes(Encoding.PEM))
    files[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return files


def test_a_worker_serves_https(
    workers: Callable[..., Worker], certificate: tuple[Path, Path]
) -> None:
    worker = workers("--tls-cert", str(certificate[0]), "--tls-key", str(certificate[1]))
    worker.start(until_served=False)
    worker.wait_until(lambda: "serving" in worker.log)
    worker.brain.wait_for_beat()
    context = ssl.create_default_context(cafile=str(certificate[0]))
    connection = http.client.HTTPSConnection("127.0.0.1", worker.port, context=context, timeout=20)
    for method, kind in (("PUT", TicketKind.STORE), ("GET", TicketKind.READ)):
        ticket = worker.brain.signer.ticket(CONTENT, kind=kind)
        body = CONTENT if method == "PUT" else None
        connection.request(method, object_path(name(CONTENT)), body, {TICKET_HEADER: ticket})
        response = connection.getresponse()
        assert response.status in {200, 201}
        received = response.read()
    connection.close()
    assert received == CONTENT


def test_a_brain_without_a_trusted_certificate_is_refused(
    brain: FakeBrain, workers: Callable[..., Worker], certificate: tuple[Path, Path]
) -> None:
    brain.use_tls(certificate)
    stranger = workers().start(until_served=False)
    stranger.wait_until(lambda: "brain_away" in stranger.log)
    assert "CERTIFICATE_VERIFY_FAILED" in stranger.log
    assert brain.requests == 0
    workers("--brain-ca", str(certificate[0])).start()
    assert brain.beats
