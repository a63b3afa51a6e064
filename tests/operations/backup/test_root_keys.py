"""No root key is in a backup, not even for those who can decrypt it."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection

from environments.models import Organization
from operations.backup import sealing
from operations.documents import settings_rows
from sqlgateway.databases.copies import programs
from tests.commands import facts
from tests.operations.backup.keys import Keys

pytestmark = pytest.mark.slow

# Shorter values may be a part of other text.
SHORTEST = 12
# A dump begins so; its rows are compressed.
DUMP = b"PGDMP"


def root_keys() -> dict[str, list[str]]:
    """Return every secret of the settings, as it is configured and as it is used."""
    accounts = settings.ACCOUNTS
    found: dict[str, list[str]] = {
        "SECRET_KEY": [settings.SECRET_KEY],
        "ZSECRET_KEYS": [*settings.SECRET_KEYS],
        "ZJWT_SECRET": [*accounts.access_keys],
        "ZJWT_REFRESH_SECRET": [*accounts.refresh_keys],
        "ZMFA_SECRET": [*accounts.mfa_keys],
    }
    for row in settings_rows():
        if row.is_secret:
            for name in row.names:
                found.setdefault(name, []).extend(settings.ENV.raw(name).split(","))
    return {
        name: [value.strip() for value in values if len(value.strip()) >= SHORTEST]
        for name, values in found.items()
    }


def decrypted(store: Path, keys: Keys, folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the contents of each file of a store, dumps as SQL."""
    identities = sealing.read_identities(str(keys.file))
    plain = folder / "plain"
    for file in sorted(store.rglob("*")):
        if file.is_file() and file.suffix == ".age":
            sealing.open_file(file, plain, identities)
            data = plain.read_bytes()
            yield file.name, as_sql(plain) if data.startswith(DUMP) else data
        elif file.is_file():
            yield file.name, file.read_bytes()


def as_sql(dump: Path) -> bytes:
    connection.ensure_connection()
    restore = programs.folder(connection.connection.info.server_version // 10_000) / "pg_restore"
    return subprocess.run([restore, "-f", "-", dump], capture_output=True, check=True).stdout


def test_no_root_key_is_in_a_decrypted_backup(
    home: Organization, store: Path, keys: Keys, tmp_path: Path
) -> None:
    facts("backup")
    secrets = root_keys()
    assert sum(bool(values) for values in secrets.values()) >= 6
    files = dict(decrypted(store, keys, tmp_path))
    # It is the backup that is searched, and its rows.
    assert any(b"alice@example.com" in data for data in files.values())
    assert any(b"as well" in data for data in files.values())
    assert any(b"object 3" in data for data in files.values())
    identity = keys.file.read_text().splitlines()[-1]
    found = [
        (name, setting)
        for name, data in files.items()
        for setting, values in [*secrets.items(), ("the private key", [identity])]
        for value in values
        if value.encode() in data
    ]
    assert found == []
