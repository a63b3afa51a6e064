"""Figures that a scrape reads from the database."""

from datetime import timedelta

import pytest
from django.db import OperationalError, connection
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob

from common.metrics.figures import GaugeGroup, gauge
from common.metrics.tasks import TASKS
from tests.cast import Caller
from tests.scrape import scrape

pytestmark = pytest.mark.django_db


def add_job(status: str, queue: str, *, age: timedelta) -> None:
    """Insert a job; procrastinate's models are read-only."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO procrastinate_jobs (queue_name, task_name, status, scheduled_at)"
            " VALUES (%s, 'a.task', %s::procrastinate_job_status, %s)",
            [queue, status, timezone.now() - age],
        )


def test_the_task_queue_is_counted_by_queue_with_the_age_of_the_oldest() -> None:
    assert not ProcrastinateJob.objects.exists()
    add_job("todo", "mail", age=timedelta(minutes=5))
    add_job("todo", "mail", age=timedelta(minutes=1))
    add_job("todo", "mail", age=-timedelta(hours=1))
    add_job("failed", "mail", age=timedelta(0))
    add_job("doing", "mail", age=timedelta(0))

    seen = scrape()

    assert seen.value("zonal_tasks_waiting", queue="mail") == 2
    assert 300 <= seen.value("zonal_tasks_oldest_seconds", queue="mail") < 330
    assert seen.value("zonal_tasks_failed") == 1
    assert seen.value("zonal_tasks_running") == 1
    assert seen.value("zonal_figures_readable", subject="tasks") == 1


def test_figures_are_kept_for_some_seconds() -> None:
    assert scrape().value("zonal_tasks_failed") == 0
    add_job("failed", "mail", age=timedelta(0))

    assert "zonal_tasks_failed 0.0" in Caller().get("/metrics").raw.content.decode()
    assert scrape().value("zonal_tasks_failed") == 1


def test_connections_to_the_control_database_are_counted() -> None:
    seen = scrape()

    assert seen.value("zonal_database_connections", state="idle") >= 1
    assert seen.value("zonal_database_connections_most") > 10


def test_without_the_database_the_rest_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost() -> None:
        raise OperationalError("to 10.0.0.7")

    monkeypatch.setattr(TASKS, "_read", lost)
    monkeypatch.setattr("common.metrics.figures.connection.close", lambda: None)
    seen = scrape()
    # The next test must read again.
    TASKS.forget()

    assert seen.value("zonal_figures_readable", subject="tasks") == 0
    assert "zonal_tasks_failed" not in seen.names
    assert "zonal_request_seconds_count" in seen.names


def test_a_subject_is_read_once_however_many_scrapes_come() -> None:
    answers = iter([[gauge("a", "The first answer.", 1)], [gauge("a", "The second.", 2)]])
    group = GaugeGroup("test", lambda: next(answers), keep_s=60)

    first = group.gauges()
    assert group.gauges() is first
    group.forget()
    assert group.gauges() is not first
