"""Background jobs of the gateway."""

from django.utils import timezone
from procrastinate.contrib.django import app

from common.scoping import unscoped
from sqlgateway.run import history, running_requests
from sqlgateway.transactions import operations


@app.periodic(cron="*/5 * * * *")
@app.task(queueing_lock="sqlgateway_forget_transactions")
@unscoped("upkeep for every organization")
def forget_transactions(timestamp: int) -> None:
    """Delete the rows of interactive transactions that ended long enough ago."""
    operations.forget_ended(now=timezone.now())


@app.periodic(cron="23 * * * *")
@app.task(queueing_lock="sqlgateway_prune_history")
@unscoped("upkeep for every organization")
def prune_history(timestamp: int) -> None:
    """Delete old rows of the history, and rows of running requests of processes that died."""
    history.prune(now=timezone.now())
    running_requests.delete_expired()
