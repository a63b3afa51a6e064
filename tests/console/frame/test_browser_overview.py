"""In a browser: the overview of what needs doing and what ran."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import transaction
from django.db.models import Sum
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.models import User
from environments import request_activity
from environments.models import Environment, RequestHour
from sqlgateway.models import SqlRecord
from sqlgateway.run import history
from tests.billing.support import line, store
from tests.console.browser import Visitor
from tests.console.journeys import sign_up

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]


def a_day_of_work(live: Environment) -> None:
    """Store requests of the last 24 hours, one of which failed, and reads of objects."""
    now = timezone.now()
    rows, lines = [], []
    for hour in range(24):
        at = now - timedelta(hours=hour)
        count = 30 + abs(12 - hour) * 4
        rows += [
            SqlRecord(
                id=UUID(int=history.first_id(at).int + number),
                organization_id=live.organization_id,
                environment=live,
                actor="dora@example.com",
                role="admin",
                request_id="r",
                at=at,
                text="SELECT 1",
                statements=1,
                elapsed_ms=2.5,
                outcome="sql_refused" if (hour, number) == (3, 1) else "success",
            )
            for number in range(count)
        ]
        place = {"used_at": at.isoformat(), "environment_pk": live.pk}
        read = {"hits": 400 + hour * 11, "misses": 20, "bytes_served": 40_000_000}
        lines.append(line(live.organization_id, **read, **place))
    SqlRecord.objects.bulk_create(rows)
    RequestHour.objects.bulk_create(
        RequestHour(
            organization_id=live.organization_id,
            hour=request_activity.first_hour(now=now) + timedelta(hours=hour),
            requests=200 + abs(12 - hour) * 25,
            refused=3,
            failed=1 if hour == 20 else 0,
        )
        for hour in range(24)
    )
    with transaction.atomic():
        store(*lines, now=now)


def test_a_newcomer_sees_what_to_do_first_and_lines_to_paste(visitor: Visitor) -> None:
    sign_up(visitor)
    actions = visitor.page.locator("#required-action-list")
    expect(actions).to_contain_text("Verify your e-mail address")
    expect(actions).to_contain_text("Add a second factor")
    lines = visitor.page.get_by_label("Lines that run a query").first
    expect(lines).to_contain_text(f"{visitor.base}/v1/sql")
    # A password alone opens no session where a second factor is on: no step takes one.
    expect(visitor.page.locator("#steps")).not_to_contain_text("password")
    login = visitor.page.get_by_label("Lines that sign in with zonal").first
    expect(login).to_contain_text(f"zonal login --url {visitor.base} --environment live")
    visitor.page.locator("#steps").get_by_role("link", name="API key").click()
    visitor.is_at("/console/api-keys")
    visitor.go("/console/")
    actions.get_by_role("link", name="Set one up").click()
    visitor.is_at("/console/security")


def test_the_last_day_is_shown_by_hour(
    visitor: Visitor, picture: Callable[[Page, str], None]
) -> None:
    sign_up(visitor)
    User.objects.update(email_verified_at=timezone.now())
    live = Environment.objects.get(slug="live")
    a_day_of_work(live)
    visitor.go("/console/")
    figures = visitor.page.locator("#figures")
    count = SqlRecord.objects.count()
    expect(figures.locator('[data-slot="sql"]')).to_have_text(f"{count:,}")
    expect(figures.locator('[data-slot="failures"]')).to_have_text("1 failed")
    asked = RequestHour.objects.aggregate(all=Sum("requests"))["all"]
    expect(figures.locator('[data-slot="requests"]')).to_have_text(f"{asked:,}")
    expect(figures.locator('[data-slot="errors"]')).to_have_text("72 refused, 1 failed")
    expect(visitor.page.get_by_role("img", name="API requests. succeeded")).to_be_visible()
    expect(figures.locator('[data-slot="ratio"]')).to_have_text("96.3% from the cache")
    expect(visitor.page.get_by_role("img", name="SQL requests. succeeded")).to_be_visible()
    picture(visitor.page, "overview")
    # Another environment has its own day.
    visitor.page.locator("#environment-menu summary").click()
    visitor.press("sandbox")
    expect(figures.locator('[data-slot="sql"]')).to_have_text("0")
