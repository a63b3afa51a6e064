"""A certificate authority for tests, and a server certificate from it."""

import datetime
import ipaddress
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)
NO_USAGE = dict.fromkeys(
    (
        "digital_signature",
        "content_commitment",
        "key_encipherment",
        "data_encipherment",
        "key_agreement",
        "key_cert_sign",
        "crl_sign",
        "encipher_only",
        "decipher_only",
    ),
    False,
)
AUTHORITY_USAGE = x509.KeyUsage(**NO_USAGE | {"key_cert_sign": True, "crl_sign": True})
SERVER_USAGE = x509.KeyUsage(**NO_USAGE | {"digital_signature": True})


def issue(folder: Path, *names: str) -> tuple[Path, ssl.SSLContext]:
    """Return the authority's PEM file and the TLS context of a server with these names."""
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = _certificate("Test authority", authority_key, "Test authority", authority_key, ())
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _certificate(names[0], key, "Test authority", authority_key, names)
    trust, chain = folder / "authority.pem", folder / "server.pem"
    trust.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    chain.write_bytes(
        certificate.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    return trust, context


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    issuer_key: ec.EllipticCurvePrivateKey,
    names: tuple[str, ...],
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - DAY)
        .not_valid_after(now + DAY)
        .add_extension(x509.BasicConstraints(ca=not names, path_length=None), critical=True)
        # Python 3.13 and later ask for these three.
        .add_extension(AUTHORITY_USAGE if not names else SERVER_USAGE, critical=True)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()),
            critical=False,
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if names:
        builder = builder.add_extension(
            x509.SubjectAlternativeName([_general(entry) for entry in names]), critical=False
        )
    return builder.sign(issuer_key, hashes.SHA256())


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
