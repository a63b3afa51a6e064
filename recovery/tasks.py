"""Background tasks of recovery; a job has only a row's id."""

from datetime import timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.utils import timezone
from procrastinate.contrib.django import app

from common.jobs import Retry
from common.scoping import unscoped
from outbox.messages.queue import URGENT_PRIORITY
from recovery.models import Recovery, RecoveryChallenge
from recovery.tokens import token_issuing

# Rows are kept this long for support; the audit trail has the rest.
KEEP: Final = timedelta(days=7)


# Urgent like the message that it sends, whose token is valid for minutes.
@app.task(
    name="recovery.resolve",
    priority=URGENT_PRIORITY,
    retry=Retry(max_attempts=5, exponential_wait=4),
)
@unscoped("a job knows its row alone")
def resolve(recovery_id: str) -> None:
    """Look up the account of a recovery and send its token; safe to repeat."""
    token_issuing.resolve(UUID(recovery_id), now=timezone.now())


@app.periodic(cron="53 * * * *")
@app.task(queueing_lock="forget_old_recoveries")
@unscoped("upkeep for every organization")
def forget_expired(timestamp: int) -> None:
    """Delete old recoveries, with the claimed addresses."""
    now = timezone.now()
    longest = timedelta(seconds=settings.RECOVERY.delay_s) + KEEP
    Recovery.objects.filter(created_at__lt=now - longest).delete()
    Recovery.objects.filter(expires_at__lt=now, user=None).delete()
    RecoveryChallenge.objects.filter(expires_at__lt=now).delete()
