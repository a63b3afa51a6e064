"""In a browser: the overview of what needs doing and what ran."""

import json
import subprocess
from collections.abc import Callable
from datetime import timedelta
from typing import Any
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
from tests.console.journeys import enter_password, run_sql, sign_out, sign_up
from tests.console.layout import ON_BOTH_SIZES, hold

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


@ON_BOTH_SIZES
@pytest.mark.usefixtures("over_a_brain")
def test_a_newcomer_is_greeted_by_first_steps_which_what_there_is_ticks_off(
    visitor: Visitor, picture: Callable[[Page, str], None]
) -> None:
    sign_up(visitor)
    visitor.go("/console/")
    page = visitor.page
    greeting = page.locator("#greeting")
    done = greeting.get_by_text("Done", exact=True).locator("visible=true")
    expect(greeting.get_by_role("heading", level=3)).to_have_count(3)
    expect(done).to_have_count(0)
    hold(visitor, "greeting")
    picture(page, "greeting")

    greeting.get_by_role("link", name="Create an API key").click()
    visitor.fill("Name", "laptop")
    page.get_by_role("dialog").get_by_role("button", name="Create").click()
    lines = page.get_by_label("Lines that use the key").first
    expect(lines).to_contain_text("curl")
    pasted = lines.text_content() or ""
    ran = subprocess.run(["sh", "-c", pasted], capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout)["rows"] == [{"answer": 42}]
    hold(visitor, "key with lines")
    visitor.press("I have saved it")
    expect(lines).to_have_text("")

    visitor.go("/console/")
    expect(done).to_have_count(1)
    greeting.get_by_role("link", name="New table").click()
    visitor.is_at("/console/tables")
    visitor.sees("Import CSV")
    expect(page.get_by_role("button", name="New table")).to_be_visible()
    visitor.go("/console/")
    greeting.get_by_role("link", name="Write SQL").click()
    visitor.is_at("/console/sql")
    run_sql(visitor, "CREATE TABLE lakes (id int PRIMARY KEY)")
    visitor.sees("CREATE TABLE")
    visitor.go("/console/")
    expect(done).to_have_count(2)
    greeting.get_by_role("link", name="Upload a file").click()
    visitor.press("New bucket")
    visitor.fill("Name", "media")
    visitor.press("Create")
    expect(page.get_by_role("button", name="New folder")).to_be_visible()
    note: Any = {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"words"}
    page.locator("#upload-files").set_input_files([note])
    visitor.sees_status("1 file uploaded")
    visitor.go("/console/")
    expect(greeting).to_be_hidden()


def test_a_dismissed_greeting_stays_away_from_that_user_alone(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.go("/console/")
    greeting = visitor.page.locator("#greeting")
    visitor.press("Dismiss")
    expect(greeting).to_be_hidden()
    sign_out(visitor)
    enter_password(visitor)
    visitor.is_at("/console/")
    expect(greeting).to_be_hidden()
    sign_out(visitor)
    sign_up(visitor, "erin@example.com")
    visitor.go("/console/")
    expect(greeting).to_be_visible()


def test_a_newcomer_sees_what_needs_doing_and_lines_to_paste(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.go("/console/")
    actions = visitor.page.locator("#required-action-list")
    expect(actions).to_contain_text("Verify your e-mail address")
    expect(actions).to_contain_text("Add a second factor")
    login = visitor.page.get_by_label("Lines that sign in with zonal").first
    expect(login).to_contain_text(f"zonal login --url {visitor.base} --environment live")
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


def test_the_database_is_ready_only_if_it_answers(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.go("/console/")
    state = visitor.page.locator("#state-database")
    expect(state).to_have_text("ready")
    body = json.dumps({"tables": None, "database_bytes": 0, "buckets": 0, "objects": 0})
    visitor.page.route("**/contents", lambda route: route.fulfill(body=body))
    visitor.go("/console/")
    expect(state).to_have_text("does not answer")
    expect(state).to_have_class("health offline")


def test_a_reader_is_shown_what_readers_see_and_nothing_else_is_asked_for(
    visitor: Visitor,
) -> None:
    sign_up(visitor)
    User.objects.update(roles=["reader"])
    refused: list[str] = []
    visitor.page.on(
        "response", lambda each: refused.append(each.url) if each.status == 403 else None
    )
    visitor.go("/console/")
    expect(visitor.page.locator("#state-database")).to_have_text("within its quota")
    visitor.go("/console/usage")
    expect(visitor.page.locator("#page-problem")).to_have_text(
        "Only admins and operators see usage and what it costs."
    )
    assert refused == []
