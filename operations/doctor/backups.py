"""Checks of backups: configuration, age of the last one, and drills."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from django.conf import settings

from operations.backup.records import last_backup, last_drill
from operations.doctor.findings import Finding, Level

SUBJECT: Final = "backups"
# Backups are daily; one may fail and be repeated on the next day.
OLD: Final = timedelta(hours=50)
# Once a quarter, plus some days.
OLD_DRILL: Final = timedelta(days=100)


def check_backups() -> Iterator[Finding]:
    """Check the age and completeness of the last backup, and the last drill."""
    if not settings.BACKUP.store.url:
        level = Level.WARNING if settings.IS_PRODUCTION else Level.SKIPPED
        advice = "Set ZBACKUP_URL and ZBACKUP_RECIPIENTS; see docs/backup.md."
        yield Finding(SUBJECT, level, "No backups are made.", advice)
        return
    yield _backup()
    yield from _drill()


def _backup() -> Finding:
    latest = last_backup()
    start = "Run `manage.py backup`, and have a timer run it each day (docs/backup.md)."
    if latest is None:
        return Finding(SUBJECT, Level.FAILED, "There has never been a backup.", start)
    hours = (datetime.now(UTC) - latest.at) // timedelta(hours=1)
    message = f"The last backup was made {hours} hours ago."
    if hours >= OLD // timedelta(hours=1):
        return Finding(SUBJECT, Level.FAILED, message, start)
    if latest.data["failed"]:
        message = f"{message} {latest.data['failed']} environments are not in it."
        return Finding(SUBJECT, Level.WARNING, message, "Run `manage.py backup`, and see why.")
    return Finding(SUBJECT, Level.OK, message)


def _drill() -> Iterator[Finding]:
    latest = last_drill()
    age = datetime.now(UTC) - latest.at if latest else None
    if age is not None and age < OLD_DRILL:
        message = f"A restore was tried {age.days} days ago."
        yield Finding(SUBJECT, Level.OK, message)
        return
    message = f"No restore was tried for {age.days} days." if age else "No restore was ever tried."
    advice = (
        "Restore a backup elsewhere, then run `manage.py backup --drilled ID` (docs/backup.md)."
    )
    yield Finding(SUBJECT, Level.WARNING, message, advice)
