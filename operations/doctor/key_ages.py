"""The keys that the control database was used with, by their fingerprints, and their ages."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Min

from audit import trail
from audit.models import AuditEvent
from audit.tags import TrailTag
from common.key_fingerprints import differing, fingerprint, latest

# Two processes with different keys that start on an empty database: the second one is refused.
LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended('zonal keys', 0))"


def current() -> dict[str, str]:
    """Return the current key of each setting that holds one.

    None without SECRET_KEY, because in development each process then generates its own keys.
    """
    if not settings.SECRETS.secret_key:
        return {}
    accounts = settings.ACCOUNTS
    keys = {
        "SECRET_KEY": settings.SECRET_KEY,
        "ZSECRET_KEYS": settings.SECRET_KEYS[0],
        "ZJWT_SECRET": accounts.access_keys[0],
        "ZJWT_REFRESH_SECRET": accounts.refresh_keys[0],
        "ZMFA_SECRET": accounts.mfa_keys[0],
        "ZCACHE_BRAIN_SECRET": settings.CACHE.secret if settings.HAS_CACHE else "",
    }
    return {name: key for name, key in keys.items() if key}


def rings() -> dict[str, Sequence[str]]:
    """Return the keys that have to fit the database, previous ones too.

    SECRET_KEY is replaced without its former value, which only sessions of staff depend on. The
    brain refuses calls with another ZCACHE_BRAIN_SECRET.
    """
    accounts = settings.ACCOUNTS
    return {
        "ZSECRET_KEYS": settings.SECRET_KEYS,
        "ZJWT_SECRET": accounts.access_keys,
        "ZJWT_REFRESH_SECRET": accounts.refresh_keys,
        "ZMFA_SECRET": accounts.mfa_keys,
    }


def missing_keys() -> list[str]:
    """Return the settings whose keys lack the one that the database was last used with."""
    with connection.cursor() as cursor:
        return differing(latest(cursor), rings())


def claim() -> list[str]:
    """Record the current keys if all keys fit the database; return the settings that do not."""
    with connection.cursor() as cursor:
        known = latest(cursor)
        is_migrated = AuditEvent._meta.db_table in connection.introspection.table_names()
        if not _new(known) or not is_migrated:
            return differing(known, rings())
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(LOCK)
        wrong = differing(latest(cursor), rings())
        if not wrong:
            record()
    return wrong


def record() -> None:
    """Record new keys by their fingerprints, which reveal nothing about the keys."""
    with connection.cursor() as cursor:
        new = _new(latest(cursor))
    for name, mark in new.items():
        data = {"setting": name, "fingerprint": mark}
        trail.add(None, TrailTag.SYSTEM_KEY_SEE, data=data)


def known_since() -> Iterator[tuple[str, datetime | None]]:
    """Yield each setting, and when its current key was first seen; None if it is new."""
    known = _first_seen()
    for name, key in current().items():
        yield name, known.get((name, fingerprint(key)))


def _new(known: dict[str, str]) -> dict[str, str]:
    """Return the fingerprints of current keys that are not the last ones known."""
    marks = {name: fingerprint(key) for name, key in current().items()}
    return {name: mark for name, mark in marks.items() if known.get(name) != mark}


def _first_seen() -> dict[tuple[str, str], datetime]:
    rows = (
        AuditEvent.objects.filter(tag=TrailTag.SYSTEM_KEY_SEE)
        .values_list("data__setting", "data__fingerprint")
        .annotate(first=Min("at"))
    )
    return {(name, mark): first for name, mark, first in rows}
