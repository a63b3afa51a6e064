"""The admin's first page, and the roll-up behind it."""

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from audit.models import AuditEvent
from billing.models.ledger import Account
from common.ids import uuid7
from edgecache.models import CacheSample
from environments.models import Environment, Organization
from outbox.models import Delivery
from platform_site.models import ActiveOrganization, ActivitySample
from platform_site.staff import activity
from sqlgateway.models import SqlRecord
from tests.cast import Caller, signed_in

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
MANY = 1_000
QUERIES = 30


def sql_record(user: User, at: datetime, elapsed_ms: float, outcome: str = "success") -> None:
    """Add a request to the history of SQL."""
    SqlRecord.objects.create(
        id=uuid7(),
        organization_id=user.organization_id,
        environment=Environment.objects.get(organization_id=user.organization_id, slug="live"),
        actor=user.email,
        role="admin",
        at=at,
        text="SELECT 1",
        statements=1,
        elapsed_ms=elapsed_ms,
        outcome=outcome,
    )


def sample(*, moment: datetime, **fields: int) -> CacheSample:
    """Return a sample of the cache's metrics."""
    numbers = {field.name: 0 for field in CacheSample._meta.fields if field.name != "id"}
    return CacheSample(**numbers | {"is_hourly": False, "moment": moment} | fields)


def shown(browser: Client) -> str:
    """Return the dashboard's text."""
    response = browser.get("/admin/")
    assert response.status_code == 200
    return response.content.decode()


def test_a_roll_up_counts_sign_ins_and_sql_once(alice: User) -> None:
    now = timezone.now()
    assert Caller().post("/v1/auth/login", {"email": "x@example.com", "password": "no"}).code
    for elapsed_ms in (10, 20, 30):
        sql_record(alice, now, elapsed_ms)
    sql_record(alice, now, 1000, "sql_error")
    later = now + timedelta(minutes=10)

    for _ in range(2):
        activity.roll_up(now=later)

    assert ActivitySample.objects.count() == 144
    found = ActivitySample.objects.get(sql_requests__gt=0)
    assert (found.sign_ins_refused, found.sql_requests, found.sql_errors) == (1, 4, 1)
    assert found.sql_p50_ms == 25
    assert found.sql_p95_ms == pytest.approx(854.5)
    assert [row.organization_id for row in ActiveOrganization.objects.all()] == [
        alice.organization_id
    ]


def test_old_samples_are_deleted(db: None) -> None:
    now = timezone.now()
    activity.roll_up(now=now - timedelta(days=40))
    ActiveOrganization.objects.create(day=(now - timedelta(days=40)).date(), organization_id=1)
    activity.roll_up(now=now)
    assert ActivitySample.objects.count() == 144
    assert not ActiveOrganization.objects.exists()


@pytest.mark.usefixtures("over_a_brain")
def test_the_dashboard_says_what_needs_attention(inside: Client, alice: User) -> None:
    wanted = {"endpoint": "http://d1.example.com", "region": "eu-moon", "capacity_bytes": 2**30}
    assert signed_in(alice).post("/v1/cache/nodes/register", wanted).status == 201
    Delivery.objects.create(kind="mail", hint="a…@example.com", payload="", state="failed")
    Account.objects.create(kind="fees", organization_id=None, balance_ucr=1_500_000)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO procrastinate_jobs (task_name, queue_name, status, args)"
            " VALUES ('a.task', 'default', 'failed', '{}'), ('a.task', 'default', 'todo', '{}')"
        )
        cursor.execute("UPDATE procrastinate_events SET at = now() - interval '1 hour'")

    page = shown(inside)

    for text in (
        "eu-moon",
        "Nodes that wait for approval",
        "Mails or SMS that failed: 1",
        "1 tasks have failed",
        "A task has been waiting for 1",
        "accounts do not add up to zero",
        "No figures for 25 minutes",
    ):
        assert text in page, text


@pytest.mark.usefixtures("over_a_brain")
def test_the_dashboard_takes_few_queries_with_many_organizations(inside: Client) -> None:
    now = timezone.now()
    made = Organization.objects.bulk_create(Organization(name=f"o{n}") for n in range(MANY))
    ActiveOrganization.objects.bulk_create(
        ActiveOrganization(day=now.date() - timedelta(days=day), organization_id=row.pk)
        for day in range(3)
        for row in made
    )
    AuditEvent.objects.bulk_create(
        AuditEvent(tag="api:session:create", organization_id=row.pk) for row in made
    )
    CacheSample.objects.bulk_create(
        sample(
            moment=now - timedelta(seconds=30 * n),
            total_hits=(2880 - n) * 3,
            total_misses=2880 - n,
            bytes_served=(2880 - n) * 2**20,
        )
        for n in range(2880)
    )
    activity.roll_up(now=now + timedelta(minutes=10))

    with CaptureQueriesContext(connection) as queries:
        page = shown(inside)

    assert len(queries) <= QUERIES
    assert f"{MANY:,} active today" in page
    assert "75.0 %" in page
