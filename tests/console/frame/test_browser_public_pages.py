"""Landing page, API docs and admin in a browser: their policies block nothing they need."""

import pytest
from playwright.sync_api import expect

from tests.console.accessibility import violations
from tests.console.browser import SCHEMES, Visitor

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_the_docs_open_an_operation_and_break_no_rule_of_accessibility(visitor: Visitor) -> None:
    visitor.page.goto(f"{visitor.base}/")
    visitor.page.get_by_role("link", name="API docs").click()
    expect(visitor.page).to_have_url(f"{visitor.base}/v1/docs")
    visitor.page.get_by_role("link", name="SQL", exact=True).click()
    visitor.page.locator("#sql > summary").click()
    expect(visitor.page.get_by_text("SELECT 1 AS one").first).to_be_visible()
    for scheme in SCHEMES:
        visitor.page.emulate_media(color_scheme=scheme)
        assert violations(visitor.page, scheme=scheme) == [], scheme


def test_the_login_page_of_the_admin_is_styled_and_works(visitor: Visitor) -> None:
    visitor.page.goto(f"{visitor.base}/admin/login/")
    expect(visitor.page.get_by_label("Code")).to_be_visible()
    button = visitor.page.get_by_role("button", name="Log in")
    expect(button).to_be_visible()
    assert button.evaluate("node => getComputedStyle(node).borderRadius") != "0px"
