"""Background work of the audit trail."""

from django.conf import settings
from django.utils import timezone
from procrastinate.contrib.django import app

from audit import trail
from common.scoping import unscoped


@app.periodic(cron="41 * * * *")
@app.task(queueing_lock="forget_expired_audit_events")
@unscoped("upkeep for every organization")
def forget_expired(timestamp: int) -> None:
    """Delete events that are older than ZAUDIT_RETENTION_DAYS."""
    trail.prune(retention_days=settings.AUDIT.retention_days, now=timezone.now())
