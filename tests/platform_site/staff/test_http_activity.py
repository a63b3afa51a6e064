"""The dashboard's figures of HTTP: errors and latency over time, of all web processes."""

from datetime import timedelta

import pytest
from django.db import DatabaseError
from django.test import Client
from django.utils import timezone

from accounts.models import User
from common.metrics import publishing
from common.metrics.http_tally import BOUNDS_MS, TALLY, Tally
from platform_site.models import HttpSample
from platform_site.staff import activity
from tests.cast import signed_in

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _nothing_counted() -> None:
    publishing.publish()
    TALLY.take()


def test_what_processes_answer_adds_up(alice: User) -> None:
    signed_in(alice).get("/v1/whoami")
    activity.write_http_samples()
    signed_in(alice).get("/v1/whoami")
    TALLY.count(503, [2.5])
    activity.write_http_samples()
    activity.write_http_samples()
    rows = HttpSample.objects.all()
    assert sum(row.requests for row in rows) == 3
    assert sum(row.errors for row in rows) == 1
    counts = [sum(place) for place in zip(*(row.counts for row in rows), strict=True)]
    assert sum(counts) == 3
    assert counts[BOUNDS_MS.index(3000)] == 1


def test_nothing_is_lost_while_the_database_is_away(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    TALLY.count(200, [0.01])

    class Away:
        def cursor(self) -> None:
            raise DatabaseError

    with monkeypatch.context() as patch:
        patch.setattr(activity, "connection", Away())
        activity.write_http_samples()
    TALLY.count(200, [0.01])
    activity.write_http_samples()
    assert sum(row.requests for row in HttpSample.objects.all()) == 2


@pytest.mark.parametrize(
    ("times_ms", "share", "least", "most"),
    [
        ([], 0.5, None, None),
        ([9] * 100, 0.5, 8, 10),
        ([9] * 94 + [900] * 6, 0.95, 800, 1000),
        ([9] * 96 + [900] * 4, 0.95, 8, 10),
        ([90_000], 0.95, 60_000, 60_000),
    ],
)
def test_a_percentile_is_between_the_bounds_around_it(
    times_ms: list[int], share: float, least: float | None, most: float | None
) -> None:
    tally = Tally()
    for each in times_ms:
        tally.count(200, [each / 1000])
    counts = next(iter(tally.take().values())).counts if times_ms else [0] * (len(BOUNDS_MS) + 1)
    found = activity.percentile(counts, share)
    assert found is None if least is None or most is None else least <= (found or 0) <= most


def test_the_dashboard_shows_errors_and_latency(inside: Client) -> None:
    for status in (200, 200, 200, 502):
        TALLY.count(status, [0.045])
    activity.write_http_samples()
    page = inside.get("/admin/").content.decode()
    assert "HTTP requests in 24 h" in page
    assert "HTTP latency" in page
    assert "with a server error" in page


def test_old_samples_are_deleted(db: None) -> None:
    now = timezone.now()
    for days in (1, 9):
        at = now - timedelta(days=days)
        HttpSample.objects.create(begins_at=at, requests=1, errors=0, counts=[])
    activity.delete_old(now=now)
    assert HttpSample.objects.count() == 1
