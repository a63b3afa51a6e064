"""Background work of the rate limits."""

from django.utils import timezone
from procrastinate.contrib.django import app

from common import rate_limits


@app.periodic(cron="41 * * * *")
@app.task(queueing_lock="forget_expired_rate_limits")
def forget_expired(timestamp: int) -> None:
    """Delete counters that no longer have an effect."""
    rate_limits.delete_old(now=timezone.now())
