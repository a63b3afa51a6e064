"""Background tasks of messages and webhooks."""

from uuid import UUID

from django.utils import timezone
from procrastinate.contrib.django import app

from common.jobs import Retry
from common.scoping import unscoped
from outbox.messages import queue, sending
from outbox.webhooks import delivery_queue
from outbox.webhooks import dispatch as dispatcher
from outbox.webhooks.events import DISPATCH


# A provider's failures are recorded in the row; procrastinate retries when the database is down.
@app.task(name=queue.DELIVER, retry=Retry(max_attempts=5, exponential_wait=4))
@unscoped("a job knows its row alone")
def deliver(delivery_id: str) -> None:
    """Attempt one delivery; safe to repeat."""
    sending.attempt(UUID(delivery_id))


@app.periodic(cron="*/5 * * * *")
@app.task(queueing_lock="outbox_maintain_deliveries")
@unscoped("upkeep for every organization")
def maintain_deliveries(timestamp: int) -> None:
    """Release stuck deliveries, give up expired ones, delete old ones."""
    queue.maintain(now=timezone.now())


@app.task(name=DISPATCH)
@unscoped("deliveries of every organization are sent")
def dispatch() -> None:
    """Send due deliveries; ``send_due_webhooks`` tries again after a failure."""
    dispatcher.run()


@app.periodic(cron="* * * * *")
@app.task(queueing_lock="outbox_send_due_webhooks")
@unscoped("upkeep for every organization")
def send_due_webhooks(timestamp: int) -> None:
    """Send due deliveries, including those of killed processes and lost jobs."""
    if delivery_queue.maintain(now=timezone.now()):
        dispatcher.run()
