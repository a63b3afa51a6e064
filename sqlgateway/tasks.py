"""Background jobs of the gateway."""

from procrastinate import RetryStrategy
from procrastinate.contrib.django import app

from sqlgateway.provisioning import stock


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
