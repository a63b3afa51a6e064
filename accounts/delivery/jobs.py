"""Queue jobs inside Django's transaction, in every process."""

from datetime import datetime
from typing import Final
from uuid import UUID

from procrastinate.contrib.django.django_connector import DjangoConnector
from procrastinate.manager import JobManager
from procrastinate.tasks import configure_task

DELIVER: Final = "accounts.delivery.deliver"

# The worker's command replaces the app's connector by a connection pool of its own: a job deferred
# through the app would be committed before the task's own rows, or in spite of their rollback.
_MANAGER: Final = JobManager(DjangoConnector())


def enqueue(delivery_id: UUID, *, at: datetime | None = None, queueing_lock: str = "") -> None:
    """Queue an attempt at a delivery, now or at a time; the job contains only the id.

    queueing_lock: AlreadyEnqueued is raised while a job with the same lock is waiting.
    """
    configure_task(
        name=DELIVER,
        job_manager=_MANAGER,
        schedule_at=at,
        queueing_lock=queueing_lock or None,
    ).defer(delivery_id=str(delivery_id))
