"""Fingerprints of keys, and those of the keys that the control database was last used with.

The audit trail has an event for each key that came into use; without Django's models, because a
brain reads it, too.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from cryptography.fernet import InvalidToken
from psycopg.errors import UndefinedTable

from common.crypto import decrypt, keyed_digest

PURPOSE: Final = "zonal backup"
FINGERPRINT_CHARS: Final = 16
LATEST: Final = """
SELECT DISTINCT ON (data->>'setting') data->>'setting', data->>'fingerprint'
FROM audit_auditevent WHERE tag = 'system:key:see' ORDER BY data->>'setting', at DESC, id DESC
"""
SEEN: Final = (
    "SELECT DISTINCT data->>'fingerprint' FROM audit_auditevent "
    "WHERE tag = 'system:key:see' AND data->>'setting' = %s"
)
SENTENCE: Final = (
    "lacks the key that this database was used with. Set that one, too (docs/production.md, Keys)."
)
ENCRYPTION: Final = "ZSECRET_KEYS"
# What is stored for good, encrypted; the rest is of requests, mails and sign-ins under way.
CLUSTERS: Final = (("sqlgateway_cluster", "url_secret"),)
STORED: Final = (
    *CLUSTERS,
    ("sqlgateway_database", "secrets"),
    ("twofactor_factor", "secret"),
    ("oauth_identity", "credentials"),
    ("outbox_webhookendpoint", "secret"),
    ("brain_accesskey", "secret"),
    ("brain_origin", "secret"),
)


def fingerprint(key: str) -> str:
    """Return a digest that identifies keys without revealing them, because they are random."""
    return keyed_digest(key, PURPOSE, "key").hex()[:FINGERPRINT_CHARS]


def latest(cursor: Any) -> dict[str, str]:
    """Return the fingerprint of the key that each setting last had; {} before a first migration.

    cursor: of psycopg or Django, in autocommit.
    """
    try:
        cursor.execute(LATEST)
    except Exception as exc:
        if isinstance(exc, UndefinedTable) or isinstance(exc.__cause__, UndefinedTable):
            return {}
        raise
    return dict(cursor.fetchall())


def lacking(cursor: Any, rings: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the settings whose keys do not fit the database.

    They lack the key that it was last used with, or, of ZSECRET_KEYS, an earlier one that stored
    rows are still encrypted with.
    """
    found = differing(latest(cursor), rings)
    if ENCRYPTION in rings and ENCRYPTION not in found and _lacks_earlier(cursor, rings):
        found.append(ENCRYPTION)
    return found


def _lacks_earlier(cursor: Any, rings: Mapping[str, Sequence[str]]) -> bool:
    if not has_table(cursor, "audit_auditevent"):
        return False
    cursor.execute(SEEN, [ENCRYPTION])
    seen = {mark for (mark,) in cursor.fetchall()}
    # Only then all rows are read.
    return not seen <= set(map(fingerprint, rings[ENCRYPTION])) and is_unreadable(cursor, STORED)


def is_unreadable(cursor: Any, columns: Sequence[tuple[str, str]]) -> bool:
    """True if a row of these tables and columns is encrypted with none of ZSECRET_KEYS."""
    for table, column in columns:
        if not has_table(cursor, table):
            continue
        cursor.execute(f"SELECT {column} FROM {table} WHERE {column} <> ''")  # noqa: S608 - constants
        for (token,) in cursor.fetchall():
            try:
                decrypt(token)
            except InvalidToken:
                return True
    return False


def has_table(cursor: Any, table: str) -> bool:
    """True if a table exists."""
    cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [table])
    return bool(cursor.fetchone()[0])


def differing(known: Mapping[str, str], rings: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the settings whose keys lack the one that the database was last used with."""
    return [
        name
        for name, ring in rings.items()
        if name in known and known[name] not in map(fingerprint, ring)
    ]
