"""Queue jobs that are part of Django's transaction, in every process."""

from datetime import datetime
from typing import Final
from uuid import UUID

from procrastinate.contrib.django.django_connector import DjangoConnector
from procrastinate.manager import JobManager
from procrastinate.tasks import configure_task

DELIVER: Final = "accounts.delivery.deliver"

# The worker's command gives the app a connection pool of its own: what a task defers through the
# app would be committed before the task's own rows, or in spite of their rollback.
_MANAGER: Final = JobManager(DjangoConnector())


def enqueue(delivery_id: UUID, *, at: datetime | None = None, queueing_lock: str = "") -> None:
    """Have a delivery attempted, at once or at a time; the job holds nothing but its id.

    queueing_lock: raises procrastinate's AlreadyEnqueued while a job with the same lock waits.
    """
    configure_task(
        name=DELIVER,
        job_manager=_MANAGER,
        schedule_at=at,
        queueing_lock=queueing_lock or None,
    ).defer(delivery_id=str(delivery_id))
