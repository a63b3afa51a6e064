"""Background jobs of the gateway."""

from datetime import timedelta
from typing import Final

from django.utils import timezone
from procrastinate import RetryStrategy
from procrastinate.contrib.django import app

from sqlgateway.models import InteractiveTransaction
from sqlgateway.provisioning import stock
from sqlgateway.records import retention, running

# For that long a commit whose answer was lost can be asked about.
KEEP_TRANSACTIONS: Final = timedelta(hours=1)


@app.periodic(cron="*/5 * * * *")
@app.task(queueing_lock="sqlgateway_keep_stock")
def keep_stock(timestamp: int) -> None:
    """Refill the stock regularly: after installation, a crash or an upgrade."""
    stock.refill()


@app.task(
    queueing_lock="sqlgateway_refill_stock",
    retry=RetryStrategy(max_attempts=5, exponential_wait=4),
)
def refill_stock() -> None:
    """Replace claimed databases."""
    stock.refill()


@app.periodic(cron="17 * * * *")
@app.task(queueing_lock="sqlgateway_forget_transactions")
def forget_transactions(timestamp: int) -> None:
    """Delete the rows of interactive transactions that ended long ago."""
    before = timezone.now() - KEEP_TRANSACTIONS
    InteractiveTransaction.unscoped.filter(expires_at__lt=before).delete()  # unscoped: housekeeping


@app.periodic(cron="23 * * * *")
@app.task(queueing_lock="sqlgateway_prune_history")
def prune_history(timestamp: int) -> None:
    """Delete what the history keeps no longer, and what processes that died left running."""
    retention.prune(now=timezone.now())
    running.delete_expired()
