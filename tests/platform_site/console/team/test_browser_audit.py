"""In a browser: the audit trail, page by page."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from tests.accounts.audit.test_trail import happened
from tests.platform_site.console.browser import Visitor
from tests.platform_site.console.journeys import EMAIL, sign_up

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]


def test_an_admin_filters_the_audit_trail(
    visitor: Visitor, picture: Callable[[Page, str], None]
) -> None:
    sign_up(visitor)
    user = User.unscoped.get()
    for number in range(60):
        happened(user, f"api:thing{number}:create", environment_id="live", data={"number": number})
    happened(user, "api:script:create", data={"name": "<img src=x onerror=alert(1)>"})
    visitor.go("/console/audit")
    rows = visitor.page.locator("#event-rows tr")
    expect(rows).to_have_count(50)
    rows.first.get_by_role("button").click()
    drawer = visitor.page.get_by_role("dialog")
    # What callers chose is shown as text.
    expect(drawer).to_contain_text("<img src=x onerror=alert(1)>")
    expect(drawer).to_contain_text("api:script:create")
    visitor.press("Close")
    picture(visitor.page, "audit")
    visitor.press("Show older")
    expect(rows).to_have_count(63)
    expect(visitor.page.get_by_role("button", name="Show older")).to_be_hidden()
    visitor.fill("Event or its beginning", "api:organization")
    visitor.press("Show")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text(EMAIL)
    expect(rows.first).to_contain_text("A sign-up created an organization")
    visitor.fill("Event or its beginning", "api:nothing")
    visitor.press("Show")
    visitor.sees("Nothing fits.")


def test_a_reader_sees_that_the_audit_trail_is_not_permitted(visitor: Visitor) -> None:
    sign_up(visitor)
    User.unscoped.update(roles=["reader"])
    visitor.go("/console/audit")
    visitor.sees("Only admins and operators see the audit trail.")
