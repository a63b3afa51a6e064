"""Deliveries in numbers: the web server tells what the worker's processes did."""

from datetime import timedelta

import pytest
from django.db import DatabaseError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from outbox import metrics
from outbox.messages import queue
from outbox.models import Delivery
from tests.cast import Caller
from tests.outbox.messages.support import run

pytestmark = pytest.mark.django_db


def sample(name: str, kind: str, state: str) -> float | None:
    """Return a gauge as Prometheus reads it."""
    text = Caller().get("/metrics").raw.content.decode()
    line = f'zonal_deliveries_{name}{{kind="{kind}",state="{state}"}} '
    found = [row.removeprefix(line) for row in text.splitlines() if row.startswith(line)]
    return float(found[0]) if found else None


def test_waiting_and_sent_deliveries_are_counted(code_mail: Delivery) -> None:
    assert sample("unfinished", "mail", "queued") == 1
    assert sample("finished_last_hour", "mail", "sent") is None
    run(code_mail)
    assert sample("unfinished", "mail", "queued") is None
    assert sample("finished_last_hour", "mail", "sent") == 1


def test_a_failed_delivery_counts_as_unfinished(code_mail: Delivery) -> None:
    code_mail.finish(Delivery.State.FAILED, now=timezone.now())
    assert sample("unfinished", "mail", "failed") == 1
    assert sample("finished_last_hour", "mail", "failed") == 1


def test_the_longest_wait_is_measured(code_mail: Delivery) -> None:
    earlier = timezone.now() - timedelta(minutes=20)
    Delivery.objects.filter(pk=code_mail.pk).update(created_at=earlier)
    age = sample("oldest_seconds", "mail", "queued")
    assert age is not None
    assert 1200 <= age < 1260


def test_deliveries_finished_long_ago_are_not_counted(code_mail: Delivery) -> None:
    code_mail.finish(Delivery.State.SENT, now=timezone.now() - timedelta(hours=2))
    assert sample("finished_last_hour", "mail", "sent") is None


def test_a_scrape_stays_short_after_a_long_outage(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "MAX_COUNTED", 3)
    for _ in range(5):
        queue.send_mail(
            alice.email,
            "email_code",
            {"code": "1", "purpose": "to sign in", "minutes": 1},
            organization_id=alice.organization_id,
        )
    with CaptureQueriesContext(connection) as asked:
        assert sample("unfinished", "mail", "queued") == 3
    assert sum("FROM outbox_delivery" in query["sql"] for query in asked) == 2


def test_other_metrics_are_shown_without_the_database(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lost(*_: object) -> None:
        raise DatabaseError

    monkeypatch.setattr(connection, "cursor", lost)
    answer = Caller().get("/metrics")
    assert answer.status == 200
    assert b"zonal_request_seconds" in answer.raw.content
    assert b"zonal_deliveries" not in answer.raw.content
