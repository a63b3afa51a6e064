"""Queueing of jobs inside Django's transaction, in every process."""

from datetime import datetime
from typing import Final

from procrastinate.contrib.django.django_connector import DjangoConnector
from procrastinate.jobs import JobDeferrer
from procrastinate.manager import JobManager
from procrastinate.tasks import configure_task

# The worker replaces the app's connector with its own connection pool: a job deferred through the
# app would be committed before the task's rows, or even if they are rolled back.
_MANAGER: Final = JobManager(DjangoConnector())
# Half of a worker's places: these jobs take minutes, or an hour where a tenant wants it, and mails
# go on beside them.
LONG_JOBS: Final = 2


def job(
    name: str,
    *,
    at: datetime | None = None,
    queueing_lock: str | None = None,
    priority: int = 0,
) -> JobDeferrer:
    """Return the deferrer of a task, for now or for a time.

    queueing_lock: AlreadyEnqueued is raised while a job with the same lock is waiting.
    priority: workers take waiting jobs of a higher one first.
    """
    return configure_task(
        name=name,
        job_manager=_MANAGER,
        schedule_at=at,
        queueing_lock=queueing_lock,
        priority=priority,
    )


def long_job_lock(organization_id: int) -> str:
    """Return the lock of a job that copies whole databases; those of one lock wait for each other.

    So few run at once in all workers, however many one organization has begun.
    """
    return f"long_job:{organization_id % LONG_JOBS}"
