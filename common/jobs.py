"""Queueing of jobs inside Django's transaction, in every process; jobs of killed workers."""

from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from django.db import connection, transaction
from django.utils import timezone
from procrastinate.contrib.django import app
from procrastinate.contrib.django.django_connector import DjangoConnector
from procrastinate.exceptions import AlreadyEnqueued
from procrastinate.jobs import Job, JobDeferrer
from procrastinate.manager import JobManager
from procrastinate.retry import RetryDecision, RetryStrategy
from procrastinate.tasks import configure_task

from common.problems import is_database_unreachable

# The worker replaces the app's connector with its own connection pool: a job deferred through the
# app would be committed before the task's rows, or even if they are rolled back.
_MANAGER: Final = JobManager(DjangoConnector())
# Half of a worker's places: these jobs take minutes, or an hour where a tenant wants it, and mails
# go on beside them.
LONG_JOBS: Final = 2
# A worker whose heartbeat (every ten seconds) is older was killed.
LOST_AFTER_S: Final = 300
# A job that kills its worker must not do so forever.
MAX_LOSSES: Final = 5
# The pause of a job that met a lost control database, and the longest one for other services, which
# may be unreachable for hours.
DATABASE_RETRY_S: Final = 1
MAX_RETRY_S: Final = 300
# A week of these pauses.
WEEK_ATTEMPTS: Final = 2000

_LOST: Final = """
SELECT job.id, job.task_name, job.attempts, job.queueing_lock
FROM procrastinate_jobs AS job
LEFT JOIN procrastinate_workers AS worker ON worker.id = job.worker_id
WHERE job.status = 'doing'
  AND (worker.id IS NULL OR worker.last_heartbeat < now() - make_interval(secs => %s))
FOR UPDATE OF job SKIP LOCKED
"""
# As procrastinate_retry_job_v2, but the attempt does not count.
POSTPONE: Final = """
UPDATE procrastinate_jobs
SET scheduled_at = now() + make_interval(secs => %(wait_s)s), status =
    CASE WHEN abort_requested THEN 'failed' ELSE 'todo' END::procrastinate_job_status
WHERE id = %(job_id)s AND status = 'doing'
"""
_RETRY: Final = "SELECT procrastinate_retry_job_v2(%s, now(), NULL, NULL, NULL)"
_FAIL: Final = "SELECT procrastinate_finish_job_v1(%s, 'failed', false)"

log = structlog.get_logger(__name__)


class Postponement(RetryDecision):
    """The attempt does not count: the control database was unreachable, however long."""


class Retry(RetryStrategy):
    """Retries of a task that is safe to repeat, with pauses that are bounded."""

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision | None:
        """Return when the job is tried again, None after ``max_attempts``."""
        if is_database_unreachable(exception):
            return Postponement(retry_in={"seconds": DATABASE_RETRY_S})
        decision = super().get_retry_decision(exception=exception, job=job)
        if decision is None or decision.retry_at is None:
            return decision
        limit = timezone.now() + timedelta(seconds=MAX_RETRY_S)
        return RetryDecision(retry_at=min(decision.retry_at, limit))


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


def defer_once(deferrer: JobDeferrer, **arguments: Any) -> bool:
    """Queue a job; False if one with the same queueing lock is waiting already.

    Such a task has no retry strategy: the lock may be another waiting job's when it fails, so that
    the retry fails as well and the job keeps its other lock.
    """
    try:
        # A separate transaction: the refusal of a second job must not break the caller's.
        with transaction.atomic():
            deferrer.defer(**arguments)
    except AlreadyEnqueued:
        return False
    return True


def long_job_lock(organization_id: int) -> str:
    """Return the lock of a job that copies whole databases; those of one lock wait for each other.

    So few run at once in all workers, however many one organization has begun.
    """
    return f"long_job:{organization_id % LONG_JOBS}"


def release_lost() -> int:
    """Queue the jobs of killed workers again, or let them fail; return their number.

    Such a job stays in progress, and no other job with its lock begins. A task with a retry
    strategy is safe to repeat. What has a queueing lock is queued again by its own upkeep, and may
    be so already.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_LOST, [LOST_AFTER_S])
        lost = cursor.fetchall()
        for job_id, name, attempts, queueing_lock in lost:
            task = app.tasks.get(name)
            is_safe = task is not None and task.retry_strategy is not None
            is_retried = is_safe and not queueing_lock and attempts < MAX_LOSSES
            log.warning("job_worker_lost", job=job_id, task=name, is_retried=is_retried)
            cursor.execute(_RETRY if is_retried else _FAIL, [job_id])
    return len(lost)
