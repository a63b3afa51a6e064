"""In a browser: the audit trail, day by day, with its filters in the address."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, Request, expect

from accounts.models import User
from audit.models import AuditEvent
from tests.audit.test_trail import happened
from tests.cast import member
from tests.console.browser import Visitor
from tests.console.journeys import EMAIL, sign_up
from tests.console.layout import ON_BOTH_SIZES, WIDE, hold

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]
BEN = "ben@example.com"


@ON_BOTH_SIZES
def test_an_admin_reads_who_did_what_to_whom_and_finds_it_again(
    visitor: Visitor, picture: Callable[[Page, str], None]
) -> None:
    sign_up(visitor)
    user = User.objects.get()
    home = user.organization_id
    about_ben = {"member": str(member(user.organization, BEN).pk), "email": BEN}
    for number in range(60):
        happened(user, "api:bucket:create", environment_id="live", data={"bucket": f"b{number}"})
    # Commands and tasks have no user: whatever the event names, the list has one word for each.
    AuditEvent.objects.create(
        tag="cli:member:create", organization_id=home, actor="command", data=about_ben
    )
    AuditEvent.objects.create(tag="sql:database:move", organization_id=home, actor="platform")
    happened(user, "api:member:update", data={**about_ben, "roles": ["reader"]})
    happened(user, "api:origin:create", data={"origin": "<img src=x onerror=alert(1)>"})
    visitor.go("/console/audit")
    rows = visitor.page.locator(".events li")
    expect(rows).to_have_count(50)
    expect(visitor.page.locator("#days h3")).to_have_count(1)
    # What callers chose is shown as text.
    expect(rows.nth(0)).to_contain_text("created the origin <img src=x onerror=alert(1)>.")
    expect(rows.nth(1)).to_contain_text(f"{EMAIL} made {BEN} a reader.")
    expect(rows.nth(1).locator("time")).to_have_text(re.compile(r"^\d+:\d\d:\d\d"))
    expect(rows.nth(2)).to_contain_text("A database was moved to another cluster.")
    expect(rows.nth(3)).to_contain_text(f"An operator of the platform created the member {BEN}.")
    picture(visitor.page, "audit")
    hold(visitor, "audit")

    visitor.press("Show older")
    expect(rows).to_have_count(66)
    expect(visitor.page.get_by_role("button", name="Show older")).to_be_hidden()
    # The focus stays where it was, at the end of what was shown.
    expect(rows.last.get_by_role("button")).to_be_focused()

    rows.nth(1).get_by_role("button").click()
    drawer = visitor.page.get_by_role("dialog")
    expect(drawer).to_contain_text("api:member:update")
    picture(visitor.page, "audit-event")
    drawer.get_by_role("button", name=f"All about {BEN}").click()
    expect(rows).to_have_count(2)
    expect(visitor.page.locator("#chips")).to_contain_text(f"Whom: {BEN}")
    visitor.page.get_by_role("searchbox", name="Search").fill("OPERATOR ben@")
    visitor.press("Show")
    expect(rows).to_have_count(1)
    assert parse_qs(urlsplit(visitor.page.url).query) == {
        "search": ["OPERATOR ben@"],
        "affected": [BEN],
    }

    visitor.page.reload()
    visitor.settle()
    expect(rows).to_have_count(1)
    picture(visitor.page, "audit-filtered")
    visitor.page.go_back()
    expect(rows).to_have_count(2)
    visitor.press(f"Remove the filter Whom: {BEN}")
    expect(rows).to_have_count(50)
    expect(visitor.page.get_by_role("searchbox", name="Search")).to_be_focused()
    visitor.page.get_by_role("searchbox", name="Search").fill("nothing of it")
    visitor.press("Show")
    visitor.sees("No event matches these filters.")
    visitor.press("Clear all")
    expect(rows).to_have_count(50)

    happened(user, "api:bucket:delete", data={"bucket": "late"})
    visitor.press("Refresh")
    expect(rows.first).to_contain_text("deleted the bucket late.")


def test_events_are_found_by_outcome_and_environment_and_exported(
    visitor: Visitor, tmp_path: Path
) -> None:
    sign_up(visitor)
    user = User.objects.get()
    # More than one page of the list, and of the export.
    for number in range(210):
        happened(user, "api:bucket:create", environment_id="sandbox", data={"number": number})
    happened(user, "api:session:create", outcome="refused", environment_id="sandbox")
    happened(user, "api:session:delete", outcome="refused", environment_id="live")
    visitor.go("/console/audit")
    rows = visitor.page.locator(".events li")
    visitor.field("Outcome").select_option("refused")
    expect(rows).to_have_count(2)
    visitor.field("Environment").select_option("sandbox")
    expect(rows).to_have_count(1)
    # Not all that may become of a sign-in, as its summary has it.
    expect(rows).to_contain_text("was refused at a sign-in.")
    # No tag is shown where there is a sentence.
    expect(rows).not_to_contain_text("api:")
    visitor.field("Outcome").select_option("")
    expect(rows).to_have_count(50)
    with visitor.page.expect_download() as waited:
        visitor.press("Export")
    visitor.sees_status("211 events are in your downloads.")
    file = tmp_path / "audit.ndjson"
    waited.value.save_as(file)
    events = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(events) == 211
    assert {event["environment"] for event in events} == {"sandbox"}


def test_days_are_those_of_the_readers_calendar_on_which_clocks_change_too(
    visit: Callable[..., Visitor],
) -> None:
    visitor = visit(**WIDE, timezone_id="Europe/Berlin", locale="en-GB")
    sign_up(visitor)
    asked: list[dict[str, list[str]]] = []

    def note(request: Request) -> None:
        if "/v1/audit" in request.url:
            asked.append(parse_qs(urlsplit(request.url).query))

    visitor.page.on("request", note)
    visitor.go("/console/audit?since=2026-10-25&until=2026-10-25")
    visitor.sees("Days and times are those of Europe/Berlin (GMT+")
    # 25 hours.
    assert asked[-1]["since"] == ["2026-10-24T22:00:00.000Z"]
    assert asked[-1]["until"] == ["2026-10-25T23:00:00.000Z"]
    visitor.page.get_by_text("More filters").click()
    visitor.fill("From", "2026-10-26")
    visitor.press("Show")
    visitor.sees("This day is before the first one.")
    assert len(asked) == 1
    visitor.fill("From", "2026-03-29")
    visitor.fill("To", "2026-03-29")
    visitor.press("Show")
    visitor.settle()
    # 23 hours.
    assert asked[-1]["since"] == ["2026-03-28T23:00:00.000Z"]
    assert asked[-1]["until"] == ["2026-03-29T22:00:00.000Z"]
