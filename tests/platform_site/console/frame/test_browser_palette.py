"""In a browser: the command palette, by keyboard alone."""

import pytest
from playwright.sync_api import expect

from environments.models import Organization
from tests.cast import member
from tests.platform_site.console.browser import Visitor
from tests.platform_site.console.journeys import sign_up

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]


def test_pages_environments_and_members_are_a_few_letters_away(visitor: Visitor) -> None:
    sign_up(visitor)
    member(Organization.objects.get(), "bob@example.com", role="reader")
    page, keyboard = visitor.page, visitor.page.keyboard
    keyboard.press("Control+k")
    query = page.get_by_role("combobox", name="Search pages")
    expect(query).to_be_focused()
    options = page.get_by_role("option")
    keyboard.type("bob@")
    expect(options).to_have_text(["bob@example.comMember"])
    query.fill("nonesuch")
    visitor.sees("No results.")
    keyboard.press("Escape")
    expect(query).to_be_hidden()
    keyboard.press("Control+k")
    keyboard.type("sandb")
    expect(options).to_have_count(1)
    keyboard.press("Enter")
    expect(page.locator("#inside")).to_have_attribute("data-place", "sandbox")
    visitor.settle()
    page.get_by_role("button", name="Search").click()
    keyboard.type("page s")
    first = options.first.text_content()
    keyboard.press("ArrowDown")
    chosen = page.get_by_role("option", selected=True)
    expect(chosen).not_to_have_text(str(first))
    keyboard.press("ArrowUp")
    query.fill("audit")
    keyboard.press("Enter")
    visitor.is_at("/console/audit")
