"""Backups: are they set up, and when was the last one made?"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from django.conf import settings

from accounts.audit_tags import AccountTag
from accounts.models import AuditEvent
from platform_site.doctor.findings import Finding, Level

SUBJECT: Final = "backups"
# A timer makes one each day; one that fails once is tried again on the next.
OLD: Final = timedelta(hours=50)


def check_backups() -> Iterator[Finding]:
    """Check when the last backup of everything ended, and whether it had everything."""
    if not settings.BACKUP.url:
        level = Level.WARNING if settings.IS_PRODUCTION else Level.SKIPPED
        advice = "Set ZBACKUP_URL and ZBACKUP_RECIPIENTS; see docs/backup.md."
        yield Finding(SUBJECT, level, "No backups are made.", advice)
        return
    made = AuditEvent.objects.filter(tag=AccountTag.CLI_BACKUP_CREATE, data__kind="platform")
    latest = made.order_by("-at").first()
    start = "Run `manage.py backup`, and have a timer run it each day (docs/backup.md)."
    if latest is None:
        yield Finding(SUBJECT, Level.FAILED, "There has never been a backup.", start)
        return
    hours = (datetime.now(UTC) - latest.at) // timedelta(hours=1)
    message = f"The last backup was made {hours} hours ago."
    if hours >= OLD // timedelta(hours=1):
        yield Finding(SUBJECT, Level.FAILED, message, start)
    elif latest.data["failed"]:
        message = f"{message} {latest.data['failed']} environments are not in it."
        yield Finding(SUBJECT, Level.WARNING, message, "Run `manage.py backup`, and see why.")
    else:
        yield Finding(SUBJECT, Level.OK, message)
