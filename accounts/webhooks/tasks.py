"""Background tasks of webhooks."""

from django.utils import timezone
from procrastinate import RetryStrategy
from procrastinate.contrib.django import app

from accounts.webhooks import delivery_queue
from accounts.webhooks import dispatch as dispatcher
from accounts.webhooks.jobs import DISPATCH


@app.task(name=DISPATCH, retry=RetryStrategy(max_attempts=3, wait=5))
def dispatch() -> None:
    """Send due deliveries."""
    dispatcher.run()


@app.periodic(cron="* * * * *")
@app.task(queueing_lock="accounts_maintain_webhooks")
def maintain_webhooks(timestamp: int) -> None:
    """Send due deliveries, including those of killed processes and lost jobs."""
    if delivery_queue.maintain(now=timezone.now()):
        dispatcher.run()
