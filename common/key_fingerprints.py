"""Fingerprints of keys, and those of the keys that the control database was last used with.

The audit trail has an event for each key that came into use; without Django's models, because a
brain reads it, too.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from psycopg.errors import UndefinedTable

from common.crypto import keyed_digest

PURPOSE: Final = "zonal backup"
FINGERPRINT_CHARS: Final = 16
LATEST: Final = """
SELECT DISTINCT ON (data->>'setting') data->>'setting', data->>'fingerprint'
FROM audit_auditevent WHERE tag = 'system:key:see' ORDER BY data->>'setting', at DESC, id DESC
"""
SENTENCE: Final = (
    "lacks the key that this database was last used with. Set that one, too (docs/production.md, "
    "Keys)."
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


def differing(known: Mapping[str, str], rings: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the settings whose keys lack the one that the database was last used with."""
    return [
        name
        for name, ring in rings.items()
        if name in known and known[name] not in map(fingerprint, ring)
    ]
