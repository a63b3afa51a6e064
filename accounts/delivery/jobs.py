"""Queue attempts at deliveries."""

from datetime import datetime
from typing import Final
from uuid import UUID

from platform_site.lib.jobs import job

DELIVER: Final = "accounts.delivery.deliver"


def enqueue(delivery_id: UUID, *, at: datetime | None = None, queueing_lock: str = "") -> None:
    """Queue an attempt at a delivery, now or at a time; the job contains only the id.

    queueing_lock: AlreadyEnqueued is raised while a job with the same lock is waiting.
    """
    job(DELIVER, at=at, queueing_lock=queueing_lock or None).defer(delivery_id=str(delivery_id))
