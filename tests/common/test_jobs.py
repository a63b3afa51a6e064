"""Jobs of a killed worker: repeated where that is safe, and never in the way of others."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from django.db import OperationalError, connection
from django.utils import timezone
from procrastinate.contrib.django import app

from edgecache.api.errors import CacheUnavailable
from operations.tasks import release_lost_jobs
from organizations.tasks import write_export
from recovery.tasks import resolve
from tests.outbox.messages.test_workers import clean_queue, work

__all__ = ["clean_queue"]
# Of their own: a worker queues all periodic tasks, and other tests leave jobs.
QUEUE = "of_this_test"
pytestmark = pytest.mark.usefixtures("clean_queue")


@pytest.fixture(autouse=True)
def _no_worker(clean_queue: None) -> Iterator[None]:
    yield
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM procrastinate_workers")


@pytest.mark.parametrize(
    ("name", "exception", "longest_s"),
    [
        ("outbox.messages.deliver", OperationalError("the connection was lost"), 1),
        ("recovery.resolve", OperationalError("the connection was lost"), 1),
        ("edgecache.tasks.revoke_keys_created_by", CacheUnavailable(), 300),
        ("billing.tasks.notify_brain", CacheUnavailable(), 300),
    ],
)
def test_a_job_is_tried_again_soon_after_a_service_is_back(
    name: str, exception: Exception, longest_s: int
) -> None:
    """However often it has failed before: none gives up within a day of the cache's absence."""
    task = app.tasks[name]
    last = 4 if longest_s == 1 else 24 * 3600 // longest_s
    for attempts in range(last + 1):
        job = task.configure().job.evolve(id=1, attempts=attempts)
        assert task.retry_strategy is not None
        decision = task.retry_strategy.get_retry_decision(exception=exception, job=job)
        assert decision is not None
        assert decision.retry_at is not None
        assert (decision.retry_at - timezone.now()).total_seconds() <= longest_s


def test_attempts_while_the_database_is_unreachable_do_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They follow each other by the second: a failover lasts longer than five of them."""
    errors: list[Exception] = [OperationalError("the connection was lost")] * 7
    errors += [ValueError("a fault")] * 4

    def fail(*_: object, **__: object) -> None:
        if errors:
            raise errors.pop(0)

    monkeypatch.setattr("recovery.tokens.token_issuing.resolve", fail)
    queue()
    for left in range(10, -1, -1):
        work(queues=[QUEUE])
        assert (statuses(), len(errors)) == (["todo"], left)
        with connection.cursor() as cursor:
            cursor.execute("UPDATE procrastinate_jobs SET scheduled_at = NULL")
    work(queues=[QUEUE])
    assert statuses() == ["succeeded"]


def begin_and_die(*, heartbeat: str) -> None:
    """Let the only job be begun by a worker that was killed; '' for one that was pruned."""
    with connection.cursor() as cursor:
        worker_id = None
        if heartbeat:
            cursor.execute(
                "INSERT INTO procrastinate_workers (last_heartbeat) "
                "VALUES (now() - %s::interval) RETURNING id",
                [heartbeat],
            )
            (worker_id,) = cursor.fetchone()
        cursor.execute(
            "UPDATE procrastinate_jobs SET status = 'doing', worker_id = %s WHERE queue_name = %s",
            [worker_id, QUEUE],
        )


def statuses() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT status::text FROM procrastinate_jobs WHERE queue_name = %s ORDER BY id", [QUEUE]
        )
        return [status for (status,) in cursor.fetchall()]


def queue(task: object = resolve) -> None:
    names = {"recovery_id": str(uuid4())} if task is resolve else {"export_id": str(uuid4())}
    task.configure(lock=QUEUE, queue=QUEUE).defer(**names)  # type: ignore[attr-defined]  # a task


@pytest.mark.parametrize("heartbeat", ["", "6 minutes"])
def test_the_job_of_a_killed_worker_does_not_block_its_lock(heartbeat: str) -> None:
    queue()
    begin_and_die(heartbeat=heartbeat)
    queue()
    work(queues=[QUEUE])
    assert statuses() == ["doing", "todo"]
    release_lost_jobs(0)
    work(queues=[QUEUE])
    assert statuses() == ["succeeded", "succeeded"]


def test_what_is_not_safe_to_repeat_fails() -> None:
    queue(write_export)
    begin_and_die(heartbeat="")
    queue()
    release_lost_jobs(0)
    work(queues=[QUEUE])
    assert statuses() == ["failed", "succeeded"]


def test_a_job_that_kills_its_workers_is_not_repeated_forever() -> None:
    queue()
    for _ in range(6):
        begin_and_die(heartbeat="")
        release_lost_jobs(0)
    assert statuses() == ["failed"]


def test_a_job_of_a_live_worker_is_left_alone() -> None:
    queue()
    begin_and_die(heartbeat="1 minute")
    release_lost_jobs(0)
    assert statuses() == ["doing"]
