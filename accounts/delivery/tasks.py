"""Background work of the delivery."""

from uuid import UUID

from django.utils import timezone
from procrastinate import RetryStrategy
from procrastinate.contrib.django import app

from accounts.delivery import jobs, sending, upkeep


# The provider's failures are settled in the row; what is retried here is the database being away.
@app.task(name=jobs.DELIVER, retry=RetryStrategy(max_attempts=5, exponential_wait=4))
def deliver(delivery_id: str) -> None:
    """Attempt one delivery; safe to repeat."""
    sending.attempt(UUID(delivery_id))


@app.periodic(cron="*/5 * * * *")
@app.task(queueing_lock="accounts_tend_deliveries")
def tend_deliveries(timestamp: int) -> None:
    """Look after what got stuck, expired, or is old."""
    upkeep.tend(now=timezone.now())
