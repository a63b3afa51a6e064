"""Encryption of files with age: chunks whose order and end are authenticated.

age was chosen because of its public keys, so that an attacker on the platform cannot read earlier
backups, and because administrators can open single files with a common program (``age --decrypt``).
Format: https://age-encryption.org/v1.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyrage
from django.conf import settings
from pyrage import x25519

from common.commands import CommandRefused

Identity = x25519.Identity


class Digest(NamedTuple):
    """SHA-256 and size of a file, as in the manifest."""

    sha256: str
    size: int


class DecryptionFailed(Exception):
    """The file was altered or cut, or is not encrypted to these keys."""


def digest_of(file: Path) -> Digest:
    """Return SHA-256 and size of a file."""
    with file.open("rb") as opened:
        return Digest(hashlib.file_digest(opened, "sha256").hexdigest(), file.stat().st_size)


def seal_file(source: Path, target: Path) -> Digest:
    """Encrypt a file; return the digest of the encrypted one."""
    pyrage.encrypt_file(str(source), str(target), _recipients())
    return digest_of(target)


def seal(data: bytes) -> bytes:
    """Encrypt bytes."""
    return pyrage.encrypt(data, _recipients())


def open_file(source: Path, target: Path, identities: Sequence[Identity]) -> None:
    """Decrypt a file. Raises DecryptionFailed; the target must be discarded then."""
    try:
        pyrage.decrypt_file(str(source), str(target), identities)
    except (pyrage.DecryptError, OSError) as exc:
        raise DecryptionFailed(str(exc)) from exc


def opened(data: bytes, identities: Sequence[Identity]) -> bytes:
    """Decrypt bytes. Raises DecryptionFailed."""
    try:
        return pyrage.decrypt(data, identities)
    except (pyrage.DecryptError, OSError) as exc:
        raise DecryptionFailed(str(exc)) from exc


def read_identities(path: str) -> list[Identity]:
    """Return the private keys in a file of ``age-keygen``. Raises CommandRefused."""
    try:
        lines = Path(path).read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError) as exc:
        raise CommandRefused(
            "identity_unreadable", "The file of --identity cannot be read."
        ) from exc
    keys = [line for line in lines if line.startswith("AGE-SECRET-KEY-1")]
    try:
        found = [Identity.from_str(key) for key in keys]
    except pyrage.IdentityError:
        found = []
    if not found:
        raise CommandRefused(
            "identity_unreadable", "The file of --identity contains no private key of age."
        )
    return found


def _recipients() -> list[x25519.Recipient]:
    return [x25519.Recipient.from_str(text) for text in settings.BACKUP.recipients]
