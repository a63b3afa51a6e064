"""Queue attempts at deliveries."""

from datetime import datetime, timedelta
from typing import Final

from common.jobs import job
from outbox.deliveries import Delivery

DELIVER: Final = "outbox.messages.deliver"
# A message that is worthless after this time, such as a code, is sent before all others: ten
# thousand invitations take longer than a code is valid.
URGENT: Final = timedelta(hours=1)
URGENT_PRIORITY: Final = 10


def enqueue(delivery: Delivery, *, at: datetime | None = None, queueing_lock: str = "") -> None:
    """Queue an attempt at a delivery, now or at a time; the job contains only the id.

    queueing_lock: AlreadyEnqueued is raised while a job with the same lock is waiting.
    """
    job(
        DELIVER,
        at=at,
        queueing_lock=queueing_lock or None,
        priority=URGENT_PRIORITY if _is_urgent(delivery) else 0,
    ).defer(delivery_id=str(delivery.pk))


def _is_urgent(delivery: Delivery) -> bool:
    ends_at = delivery.expires_at
    return ends_at is not None and ends_at - delivery.created_at <= URGENT
