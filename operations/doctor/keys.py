"""Checks of the keys of tokens and stored secrets: their age, and obsolete ones."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from django.conf import settings

from accounts.tokens import signing
from common.key_fingerprints import SENTENCE
from operations.doctor import key_ages
from operations.doctor.findings import Finding, Level

SUBJECT: Final = "keys"
OLD: Final = timedelta(days=365)
TOKENS: Final = "Run `manage.py rotatekeys`; no one is signed out."
ADVICE: Final = {
    "SECRET_KEY": "Set a new one and restart: staff signs in again, and open forms are sent again.",
    "ZSECRET_KEYS": "Put a new key in front and keep the others (docs/production.md, Keys).",
    "ZJWT_SECRET": TOKENS,
    "ZJWT_REFRESH_SECRET": TOKENS,
    "ZMFA_SECRET": "Move it to ZMFA_SECRET_PREVIOUS and set a new one (docs/production.md, Keys).",
    "ZCACHE_BRAIN_SECRET": "Change it as docs/cache-operations.md says; nothing pauses.",
}


def check_keys() -> Iterator[Finding]:
    """Check the age of each key, and find previous keys that no longer verify anything."""
    now = datetime.now(UTC)
    for name in key_ages.missing_keys():
        message = f"{name} {SENTENCE}"
        advice = "Without it, what it encrypted or signed cannot be read. No process starts so."
        yield Finding(SUBJECT, Level.FAILED, message, advice)
    yield from _ages(now)
    accounts = settings.ACCOUNTS
    for name, ring in zip(
        signing.ROTATED, (accounts.access_keys, accounts.refresh_keys), strict=True
    ):
        dates = [accounts.key_retirements.get(key) for key in ring[1:]]
        if any(date is None for date in dates):
            message = f"A key of {name}_PREVIOUS has no last day, and verifies forever."
            advice = "Give it as KEY@DATE, or remove it."
            yield Finding(SUBJECT, Level.WARNING, message, advice)
        if any(date is not None and date <= now.date() for date in dates):
            message = f"A key of {name}_PREVIOUS has retired."
            yield Finding(SUBJECT, Level.WARNING, message, "Remove it from the setting.")


def _ages(now: datetime) -> Iterator[Finding]:
    if not key_ages.current():
        message = "Each process makes keys of its own: everybody is signed out at a restart."
        yield Finding(SUBJECT, Level.SKIPPED, message, "Set SECRET_KEY and the others.")
    for name, since in key_ages.known_since():
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
