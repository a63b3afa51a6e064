"""In a browser: the audit trail, page by page."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from audit.models import AuditEvent
from tests.audit.test_trail import happened
from tests.console.browser import Visitor
from tests.console.journeys import EMAIL, sign_up

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]


def test_an_admin_filters_the_audit_trail(
    visitor: Visitor, picture: Callable[[Page, str], None]
) -> None:
    sign_up(visitor)
    user = User.objects.get()
    for number in range(60):
        happened(user, "api:bucket:create", environment_id="live", data={"number": number})
    # Commands and tasks have no user: whatever the event names, the list has one word for each.
    for tag, actor in (("cli:database:dump", "command"), ("sql:database:move", "platform")):
        AuditEvent.objects.create(tag=tag, organization_id=user.organization_id, actor=actor)
    happened(user, "api:origin:create", data={"origin": "<img src=x onerror=alert(1)>"})
    visitor.go("/console/audit")
    rows = visitor.page.locator("#event-rows tr")
    expect(rows).to_have_count(50)
    expect(rows.nth(1)).to_contain_text("the platform")
    expect(rows.nth(2)).to_contain_text("an operator of the platform")
    rows.first.get_by_role("button").click()
    drawer = visitor.page.get_by_role("dialog")
    # What callers chose is shown as text.
    expect(drawer).to_contain_text("<img src=x onerror=alert(1)>")
    expect(drawer).to_contain_text("api:origin:create")
    visitor.press("Close")
    picture(visitor.page, "audit")
    visitor.press("Show older")
    expect(rows).to_have_count(65)
    expect(visitor.page.get_by_role("button", name="Show older")).to_be_hidden()
    visitor.fill("Event or its beginning", "api:organization")
    visitor.press("Show")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text(EMAIL)
    expect(rows.first).to_contain_text("A sign-up created an organization")
    visitor.fill("Event or its beginning", "api:nothing")
    visitor.press("Show")
    visitor.sees("No results.")


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
    rows = visitor.page.locator("#event-rows tr")
    visitor.field("Outcome").select_option("refused")
    visitor.press("Show")
    expect(rows).to_have_count(2)
    visitor.field("Environment").select_option("sandbox")
    visitor.press("Show")
    expect(rows).to_have_count(1)
    # Not all that may become of a sign-in, as its summary has it.
    expect(rows).to_contain_text("A sign-in was refused.")
    # No tag is shown where there is a sentence.
    expect(rows).not_to_contain_text("api:")
    visitor.field("Outcome").select_option("")
    visitor.press("Show")
    expect(rows).to_have_count(50)
    with visitor.page.expect_download() as waited:
        visitor.press("Export")
    visitor.sees_status("211 events are in your downloads.")
    file = tmp_path / "audit.ndjson"
    waited.value.save_as(file)
    events = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(events) == 211
    assert {event["environment"] for event in events} == {"sandbox"}
