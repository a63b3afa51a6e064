"""The history of metrics."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from accounts.models import User
from edgecache import tasks
from edgecache.api import metrics_history
from edgecache.models import CacheSample
from tests.cast import signed_in
from tests.edgecache.api.brain import METRICS, ScriptedBrain

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 11, 21, 12, 0, 1, tzinfo=UTC)


def test_an_interval_has_one_sample(brain: ScriptedBrain) -> None:
    assert metrics_history.collect(now=NOON)
    assert not metrics_history.collect(now=NOON + timedelta(seconds=20))
    assert metrics_history.collect(now=NOON + timedelta(seconds=30))
    first, second = CacheSample.objects.order_by("moment")
    assert (first.moment, second.moment) == (
        datetime(2026, 11, 21, 12, 0, tzinfo=UTC),
        datetime(2026, 11, 21, 12, 0, 30, tzinfo=UTC),
    )
    assert first.total_hits == METRICS["total_hits"]


def test_an_unavailable_brain_leaves_a_gap_and_no_failed_job(brain: ScriptedBrain) -> None:
    brain.close()
    tasks.poll_metrics()
    assert not CacheSample.objects.exists()


def test_hours_keep_their_last_sample_and_old_samples_are_deleted(brain: ScriptedBrain) -> None:
    for minutes in (5, 25, 59, 61):
        brain.say("GET /v1/metrics", 200, METRICS | {"total_hits": minutes})
        metrics_history.collect(now=NOON - timedelta(days=3) + timedelta(minutes=minutes))
    metrics_history.roll_up(now=NOON)
    metrics_history.roll_up(now=NOON)
    hourly = CacheSample.objects.filter(is_hourly=True).order_by("moment")
    assert [sample.total_hits for sample in hourly] == [59, 61]
    assert [sample.moment.minute for sample in hourly] == [0, 0]
    assert not CacheSample.objects.filter(is_hourly=False).exists()


def test_the_current_hour_is_not_thinned(brain: ScriptedBrain) -> None:
    metrics_history.collect(now=NOON)
    metrics_history.roll_up(now=NOON + timedelta(minutes=30))
    assert not CacheSample.objects.filter(is_hourly=True).exists()


def test_a_long_period_is_thinned_and_ends_with_the_latest_sample(
    brain: ScriptedBrain, bob: User
) -> None:
    now = timezone.now()
    values = {name: METRICS[name] for name in metrics_history.FIELDS} | {"total_hits": 0}
    CacheSample.objects.bulk_create(
        CacheSample(moment=now - timedelta(seconds=30 * age), **values | {"total_misses": age})
        for age in range(1000)
    )
    answer = signed_in(bob).get("/v1/cache/metrics/history?hours=12")
    samples = answer.body["samples"]
    assert answer.body["interval_s"] == 90
    assert 300 < len(samples) <= 360
    assert samples[-1]["total_misses"] == 0
    assert [sample["collected_at"] for sample in samples] == sorted(
        sample["collected_at"] for sample in samples
    )


@pytest.mark.parametrize("hours", ["0", "-1", "x", "100000"])
def test_an_invalid_period_is_refused(bob: User, hours: str) -> None:
    answer = signed_in(bob).get(f"/v1/cache/metrics/history?hours={hours}")
    assert (answer.status, answer.body["errors"][0]["field"]) == (400, "hours")


def test_a_minute_is_divided_into_polls(brain: ScriptedBrain) -> None:
    from procrastinate.contrib.django.models import ProcrastinateJob

    tasks.plan_polls(timestamp=0)
    jobs = ProcrastinateJob.objects.filter(task_name="edgecache.tasks.poll_metrics")
    first, second = jobs.order_by("scheduled_at").values_list("scheduled_at", flat=True)
    assert round((second - first).total_seconds()) == 30
