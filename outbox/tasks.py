"""Background tasks of delivery."""

from uuid import UUID

from django.utils import timezone
from procrastinate import RetryStrategy
from procrastinate.contrib.django import app

from outbox.messages import jobs, maintenance, sending


# A provider's failures are recorded in the row; procrastinate retries when the database is down.
@app.task(name=jobs.DELIVER, retry=RetryStrategy(max_attempts=5, exponential_wait=4))
def deliver(delivery_id: str) -> None:
    """Attempt one delivery; safe to repeat."""
    sending.attempt(UUID(delivery_id))


@app.periodic(cron="*/5 * * * *")
@app.task(queueing_lock="accounts_maintain_deliveries")
def maintain_deliveries(timestamp: int) -> None:
    """Release stuck deliveries, give up expired ones, delete old ones."""
    maintenance.maintain(now=timezone.now())
