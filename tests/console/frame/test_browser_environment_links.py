"""In a browser: an address that names its environment, opened in this and in another one."""

import pytest
from playwright.sync_api import expect

from tests.console.browser import Visitor
from tests.console.journeys import sign_up
from tests.console.layout import ON_BOTH_SIZES, hold

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]
PATH = "/console/api-keys"


@ON_BOTH_SIZES
def test_a_link_into_another_environment_asks_before_it_shows_anything(visitor: Visitor) -> None:
    sign_up(visitor)
    page = visitor.page
    heading = page.get_by_role("heading", level=1)
    visitor.go(f"{PATH}?environment=sandbox")
    expect(heading).to_have_text("This link leads to sandbox")
    expect(page.locator("#api-keys")).to_be_hidden()
    hold(visitor, "another environment")
    visitor.press("Switch to sandbox")
    expect(heading).to_have_text("API keys")
    expect(page.locator("#inside")).to_have_attribute("data-place", "sandbox")
    visitor.is_at(f"{PATH}?environment=sandbox")

    visitor.go(f"{PATH}?environment=live&view=all")
    visitor.press("Stay in sandbox")
    visitor.is_at(f"{PATH}?view=all")
    expect(heading).to_have_text("API keys")

    visitor.go(f"{PATH}?environment=gone")
    visitor.sees("Lakes & Sons has no environment gone. It may have been deleted.")
    expect(page.locator("#elsewhere-switch")).to_be_hidden()


def test_who_switches_is_not_asked_in_any_tab(visitor: Visitor) -> None:
    sign_up(visitor)
    other = visitor.context.new_page()
    for page in (other, visitor.page):
        page.goto(f"{visitor.base}{PATH}?environment=live")
        expect(page.get_by_role("heading", level=1)).to_have_text("API keys")
    visitor.settle()
    visitor.page.locator("#environment-menu summary").click()
    visitor.press("sandbox")
    for page in (visitor.page, other):
        expect(page.locator("#inside")).to_have_attribute("data-place", "sandbox")
        expect(page.get_by_role("heading", level=1)).to_have_text("API keys")
        expect(page).to_have_url(f"{visitor.base}{PATH}")
