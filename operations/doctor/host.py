"""Checks of this machine, its settings, and its addresses: disk, passkey origins, TLS."""

import shutil
import socket
import ssl
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from http.client import HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks

from common.machine.reasons import reason
from operations.doctor.findings import Finding, Level

# Free shares of the disk.
LITTLE_FREE: Final = 0.10
TOO_LITTLE_FREE: Final = 0.03
GIB: Final = 2**30
TIMEOUT_S: Final = 5
# X509_V_ERR_CERT_HAS_EXPIRED and X509_V_ERR_HOSTNAME_MISMATCH of OpenSSL.
EXPIRED: Final = 10
OTHER_NAME: Final = 62
MAX_ANSWER_BYTES: Final = 2**16
# Certificates of Let's Encrypt are renewed 30 days before they expire.
SOON_DAYS: Final = 14


def check_disk() -> Iterator[Finding]:
    """Check the free disk space of ZDATA_DIR."""
    disk = shutil.disk_usage(settings.DATA_DIR)
    share = disk.free / disk.total
    message = f"{disk.free // GIB} GiB ({share:.0%}) are free for {settings.DATA_DIR}."
    if share > LITTLE_FREE:
        yield Finding("disk", Level.OK, message)
    else:
        level = Level.WARNING if share > TOO_LITTLE_FREE else Level.FAILED
        yield Finding("disk", level, message, "Make room, or move ZDATA_DIR to a larger disk.")


def check_settings() -> Iterator[Finding]:
    """Run Django's checks; in production also those for deployment."""
    messages = checks.run_checks(include_deployment_checks=settings.IS_PRODUCTION)
    found = [message for message in messages if not message.is_silenced()]
    for message in found:
        level = Level.FAILED if message.is_serious() else Level.WARNING
        advice = message.hint or "See docs/settings.md."
        yield Finding("settings", level, f"{message.msg} ({message.id})", advice)
    if not found:
        kind = "production" if settings.IS_PRODUCTION else "development"
        yield Finding("settings", Level.OK, f"They fit together, for {kind}.")


def check_passkeys() -> Iterator[Finding]:
    """Check that passkeys work at the console's address."""
    origins = settings.TWOFACTOR.webauthn_origins
    parts = urlsplit(settings.PUBLIC_URL)
    here = f"{parts.scheme}://{parts.netloc}"
    if not origins:
        message = "Passkeys are not offered: no origin is set."
        yield Finding("passkeys", Level.WARNING, message, f"Set ZWEBAUTHN_ORIGINS={here}.")
    elif here not in origins:
        message = f"{here} (ZPUBLIC_URL) is not among the passkeys' origins."
        advice = f"Add it to ZWEBAUTHN_ORIGINS: passkeys fail at {here}/console/."
        yield Finding("passkeys", Level.FAILED, message, advice)
    else:
        yield Finding("passkeys", Level.OK, f"They work at {here}.")


def check_certificate() -> Iterator[Finding]:
    """Check the TLS certificate of ZPUBLIC_URL."""
    parts = urlsplit(settings.PUBLIC_URL)
    if parts.scheme != "https":
        level = Level.FAILED if settings.IS_PRODUCTION else Level.SKIPPED
        yield Finding("tls", level, f"{settings.PUBLIC_URL} is not https.", "Set ZPUBLIC_URL.")
        return
    host, port = parts.hostname or "", parts.port or 443
    try:
        expires = _expiry(host, port)
    except ssl.SSLCertVerificationError as exc:
        message = f"The certificate of {host} is refused: {exc.verify_message}."
        yield Finding("tls", Level.FAILED, message, _certificate_advice(exc.verify_code))
    except OSError as exc:
        message = f"{host}:{port} does not answer from here: {reason(exc)}"
        yield Finding("tls", Level.WARNING, message, "Try from outside: curl the ZPUBLIC_URL.")
    else:
        days = (expires - datetime.now(UTC)).days
        level = Level.OK if days >= SOON_DAYS else Level.WARNING
        advice = "" if level == Level.OK else "Find out why it was not renewed."
        yield Finding("tls", level, f"The certificate of {host} lasts {days} days.", advice)


def _certificate_advice(code: int) -> str:
    if code == EXPIRED:
        return "Renew it."
    if code == OTHER_NAME:
        return "Take one for this name, or mend ZPUBLIC_URL."
    return (
        "Send the whole chain. If the authority is your own, name its certificate in SSL_CERT_FILE "
        "(docs/production.md)."
    )


def check_proxy() -> Iterator[Finding]:
    """Check that the proxy at ZPUBLIC_URL tells the platform that a client used https."""
    parts = urlsplit(settings.PUBLIC_URL)
    if parts.scheme != "https" or not settings.SECURE_SSL_REDIRECT:
        yield Finding("proxy", Level.SKIPPED, "Nothing is redirected to https here.")
        return
    context = ssl.create_default_context()
    client = HTTPSConnection(parts.netloc, timeout=TIMEOUT_S, context=context)
    try:
        with closing(client):
            client.request("GET", "/")
            answer = client.getresponse()
            body = answer.read(MAX_ANSWER_BYTES).decode(errors="replace")
    except (OSError, HTTPException) as exc:
        message = f"{parts.netloc} does not answer from here: {reason(exc)}"
        yield Finding("proxy", Level.SKIPPED, message)
        return
    goes_to = answer.headers.get("Location", "")
    advice = "Let the proxy send it (docs/production.md), and set ZTRUSTED_PROXIES."
    if urlsplit(goes_to)[:3] == ("https", parts.netloc, "/") or "X-Forwarded-Proto" in body:
        message = f"{parts.netloc} takes https for http: X-Forwarded-Proto does not arrive."
        yield Finding("proxy", Level.FAILED, message, advice)
    else:
        yield Finding("proxy", Level.OK, f"{parts.netloc} answers, and knows https.")


def _expiry(host: str, port: int) -> datetime:
    context = ssl.create_default_context()
    with (
        socket.create_connection((host, port), timeout=TIMEOUT_S) as plain,
        context.wrap_socket(plain, server_hostname=host) as secured,
    ):
        certificate = secured.getpeercert() or {}
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(str(certificate["notAfter"])), UTC)
