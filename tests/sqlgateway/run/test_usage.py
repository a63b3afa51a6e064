"""What SQL costs is counted in the process, written once for each batch, and taken once."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.db import DatabaseError
from django.db.models import QuerySet
from django.utils import timezone

from accounts.models import User
from billing.models.rates import Rate
from billing.usage import charges_and_shares, usage_import
from common.principals import Scope
from environments.models import Environment
from sqlgateway.models import Database, SqlUsage
from sqlgateway.run import usage
from sqlgateway.run.usage import UsageMeter
from tests import cast
from tests.sqlgateway.transactions.support import begin

pytestmark = pytest.mark.django_db


@pytest.fixture
def meter(monkeypatch: pytest.MonkeyPatch) -> UsageMeter:
    """Replace the process's meter by one that writes immediately, and return it."""
    fresh = UsageMeter()
    for module in (
        "run.gateway",
        "run.history",
        "transfer.exports",
        "transactions.open_transactions",
    ):
        monkeypatch.setattr(f"sqlgateway.{module}.METER", fresh)
    monkeypatch.setattr(usage, "FLUSH_S", 0.0)
    return fresh


@pytest.fixture
def noon() -> Iterator[None]:
    """Let it be noon: no hour and no day ends during the test."""
    with time_machine.travel(timezone.now().replace(hour=12, minute=0), tick=True):
        yield


@pytest.fixture
def owner(db: None) -> User:
    return cast.member(cast.organization())


def home_of(user: User) -> Scope:
    place = Environment.objects.get(organization_id=user.organization_id, slug="live")
    return Scope(user.organization_id, place.pk)


def counted() -> list[tuple[int, int]]:
    return list(SqlUsage.objects.order_by("id").values_list("environment_pk", "statements"))


def test_statements_time_and_bytes_show_in_the_organizations_usage(
    noon: None, databases: None, meter: UsageMeter
) -> None:
    caller = cast.signed_in(cast.member(cast.organization()))
    bodies = [
        caller.post("/v1/sql", {"query": query}).raw.content
        for query in ("SELECT pg_sleep(0.02)", "SELECT 1", "SELECT nonesuch")
    ]
    streamed = caller.post("/v1/sql", {"query": "SELECT 1 AS x"}, ACCEPT="text/csv")
    raw: Any = streamed.raw
    bodies[2] = b"".join(raw.streaming_content)
    meter.flush()
    assert SqlUsage.objects.count() == 1
    Database.objects.filter(environment__slug="live").update(size_bytes=1000)
    # Two imports of one day: what was taken is gone.
    now = timezone.now()
    for _ in range(2):
        usage_import.import_sql(now=now, is_complete=True)
    charges_and_shares.settle()
    (row,) = caller.get("/v1/usage").body["sql"]
    assert (row["environment"], row["statements"], row["charged_ucr"]) == ("live", 4, 0)
    assert 20 <= row["milliseconds"] < 20_000
    assert row["egress_bytes"] == sum(map(len, bodies))
    assert row["storage_byte_hours"] == 24_000
    assert SqlUsage.objects.count() == 0


def test_the_time_of_a_commit_is_counted(databases: None, meter: UsageMeter) -> None:
    caller = cast.signed_in(cast.member(cast.organization()))
    transaction = begin(caller)
    transaction.run("SELECT 1")
    (counts,) = meter._open.values()
    before = (counts.statements, counts.seconds)

    transaction.commit()

    assert counts.statements == before[0]
    assert counts.seconds > before[1]


def test_a_write_that_was_committed_but_not_confirmed_counts_once(
    owner: User, meter: UsageMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = home_of(owner)
    meter.add(place, statements=1)
    real = QuerySet.bulk_create

    def lose(*words: Any, **more: Any) -> None:
        real(*words, **more)
        raise DatabaseError

    with monkeypatch.context() as patch:
        patch.setattr(QuerySet, "bulk_create", lose)
        with pytest.raises(DatabaseError):
            meter.flush()
    meter.add(place, statements=2)
    for _ in range(3):
        meter.flush()
    assert counted() == [(place.environment_pk, 1), (place.environment_pk, 2)]


def test_an_hour_is_taken_when_it_is_over_and_storage_once_a_day(owner: User) -> None:
    place = home_of(owner)
    now = datetime(2026, 11, 20, 12, 0, 30, tzinfo=UTC)
    for hour in (10, 11, 12):
        SqlUsage.objects.create(
            batch=f"00000000-0000-7000-8000-0000000000{hour}",
            organization_id=place.organization_id,
            environment_pk=place.environment_pk,
            hour=now.replace(hour=hour, second=0),
            statements=hour,
        )

    def taken(after: timedelta, *, is_complete: bool = False) -> list[int]:
        rows = usage.take(now=now + after, is_complete=is_complete)
        return [row["statements"] for row in rows if row["statements"]]

    # A process may still write the end of the last hour.
    assert taken(timedelta(0)) == [10]
    assert taken(timedelta(minutes=1)) == [11]
    assert taken(timedelta(minutes=2), is_complete=True) == [12]


def test_a_rate_that_is_set_charges_what_is_used_from_then_on(owner: User) -> None:
    now = timezone.now()
    Rate.objects.create(kind="sql_statement", rate_ucr=7, begins_at=now - timedelta(hours=2))
    place = home_of(owner)
    SqlUsage.objects.create(
        batch="00000000-0000-7000-8000-000000000001",
        organization_id=place.organization_id,
        environment_pk=place.environment_pk,
        hour=now,
        statements=3,
    )
    usage_import.import_sql(now=now, is_complete=True)
    charges_and_shares.settle()
    body = cast.signed_in(owner).get("/v1/usage").body
    assert (body["charged_ucr"], body["sql"][0]["charged_ucr"]) == (21, 21)
    assert cast.signed_in(owner).get("/v1/balance").body["debt_ucr"] == -21
