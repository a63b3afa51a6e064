"""Background work of recovery; a job holds nothing but a row's id."""

from datetime import timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.utils import timezone
from procrastinate import RetryStrategy
from procrastinate.contrib.django import app

from recovery.models import Recovery, RecoveryChallenge
from recovery.tokens import token_issuing

# For questions about what happened; the audit trail keeps the rest.
KEEP: Final = timedelta(days=7)


@app.task(name="recovery.resolve", retry=RetryStrategy(max_attempts=5, exponential_wait=4))
def resolve(recovery_id: str) -> None:
    """Look for the account of a recovery and send what it is due; safe to repeat."""
    token_issuing.resolve(UUID(recovery_id), now=timezone.now())


@app.periodic(cron="53 * * * *")
@app.task(queueing_lock="forget_old_recoveries")
def forget_expired(timestamp: int) -> None:
    """Delete what can no longer be used; what was claimed about whom does not stay."""
    now = timezone.now()
    longest = timedelta(seconds=settings.RECOVERY.delay_s) + KEEP
    Recovery.unscoped.filter(created_at__lt=now - longest).delete()  # unscoped: housekeeping
    Recovery.unscoped.filter(expires_at__lt=now, user=None).delete()  # unscoped: housekeeping
    RecoveryChallenge.unscoped.filter(expires_at__lt=now).delete()  # unscoped: housekeeping
