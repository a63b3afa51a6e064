"""Check the keys of tokens and stored secrets: that they fit the database, and their age.

The control database has the fingerprints of the keys that it was used with.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Min

from accounts.tokens import signing
from audit import trail
from audit.models import AuditEvent
from audit.tags import TrailTag
from common.key_fingerprints import SENTENCE, fingerprint, lacking, latest
from operations.doctor.findings import Finding, Level

SUBJECT: Final = "keys"
OLD: Final = timedelta(days=365)
ROTATE_KEYS_ADVICE: Final = "Run `manage.py rotatekeys`; no one is signed out."
ADVICE: Final = {
    "SECRET_KEY": "Set a new one and restart: staff signs in again, and open forms are sent again.",
    "ZSECRET_KEYS": "Put a new key in front and keep the others (docs/production.md, Keys).",
    "ZJWT_SECRET": ROTATE_KEYS_ADVICE,
    "ZJWT_REFRESH_SECRET": ROTATE_KEYS_ADVICE,
    "ZMFA_SECRET": "Put a new key in front and keep the old one (docs/production.md, Keys).",
    "ZCACHE_BRAIN_SECRET": "Change it as docs/production.md says (Keys); nothing pauses.",
}
# Two processes with different keys that start on an empty database: the second one is refused.
LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended('zonal keys', 0))"


def current() -> dict[str, str]:
    """Return the current key of each setting that holds one.

    Empty without SECRET_KEY, because in development each process then generates its own keys.
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
    """Return the settings whose keys lack one that the database was used with."""
    with connection.cursor() as cursor:
        return lacking(cursor, rings())


def claim() -> list[str]:
    """Record the current keys if all keys fit the database; return the settings that do not."""
    with connection.cursor() as cursor:
        known = latest(cursor)
        is_migrated = AuditEvent._meta.db_table in connection.introspection.table_names()
        if not _new(known) or not is_migrated:
            return lacking(cursor, rings())
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(LOCK)
        wrong = lacking(cursor, rings())
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


def check_keys() -> Iterator[Finding]:
    """Check the age of each key, and find previous keys that no longer verify anything."""
    now = datetime.now(UTC)
    for name in missing_keys():
        message = f"{name} {SENTENCE}"
        advice = "Without it, what it encrypted or signed cannot be read. No process starts so."
        yield Finding(SUBJECT, Level.FAILED, message, advice)
    yield from _ages(now)
    accounts = settings.ACCOUNTS
    for name, ring in zip(
        signing.ROTATED_SETTINGS, (accounts.access_keys, accounts.refresh_keys), strict=True
    ):
        dates = [accounts.key_retirements.get(key) for key in ring[1:]]
        if any(date is None for date in dates):
            message = f"An earlier key of {name} has no last day, and verifies forever."
            advice = "Give it as KEY@DATE, or remove it."
            yield Finding(SUBJECT, Level.WARNING, message, advice)
        if any(date is not None and date <= now.date() for date in dates):
            message = f"An earlier key of {name} has retired."
            yield Finding(SUBJECT, Level.WARNING, message, "Remove it from the setting.")


def _ages(now: datetime) -> Iterator[Finding]:
    if not current():
        message = "Each process makes keys of its own: everybody is signed out at a restart."
        yield Finding(SUBJECT, Level.SKIPPED, message, "Set SECRET_KEY and the others.")
    for name, since in known_since():
        if since is None:
            message = f"The age of {name} is not known yet."
            advice = "A task worker writes it down within an hour: run `manage.py doctor` again."
            yield Finding(SUBJECT, Level.SKIPPED, message, advice)
            continue
        age = now - since
        message = f"{name} has been in use for {age.days} days."
        if age > OLD:
            yield Finding(SUBJECT, Level.WARNING, message, ADVICE[name])
        else:
            yield Finding(SUBJECT, Level.OK, message)


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
