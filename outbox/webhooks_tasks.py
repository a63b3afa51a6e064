"""Background tasks of webhooks."""

from django.utils import timezone
from procrastinate.contrib.django import app

from outbox.webhooks import delivery_queue
from outbox.webhooks import dispatch as dispatcher
from outbox.webhooks.jobs import DISPATCH


@app.task(name=DISPATCH)
def dispatch() -> None:
    """Send due deliveries; ``maintain_webhooks`` tries again after a failure."""
    dispatcher.run()


@app.periodic(cron="* * * * *")
@app.task(queueing_lock="accounts_maintain_webhooks")
def maintain_webhooks(timestamp: int) -> None:
    """Send due deliveries, including those of killed processes and lost jobs."""
    if delivery_queue.maintain(now=timezone.now()):
        dispatcher.run()
