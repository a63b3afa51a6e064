"""Landing page, API docs and admin in a browser: their policies block nothing they need."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.platform_site.console.browser import Visitor

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def scroll_to(visitor: Visitor, text: str) -> None:
    """Scroll until a text is there: the page makes long lists while they are scrolled."""
    wanted = visitor.page.get_by_text(text).first
    expect(visitor.page.get_by_text("/v1/auth/login").first).to_be_visible()
    visitor.page.mouse.move(300, 300)
    for _ in range(100):
        if wanted.is_visible():
            return
        visitor.page.mouse.wheel(0, 400)
        visitor.page.wait_for_timeout(50)
    expect(wanted).to_be_visible()


def test_the_landing_page_leads_to_the_docs(visitor: Visitor, tmp_path: Path) -> None:
    visitor.page.goto(f"{visitor.base}/")
    visitor.page.get_by_role("link", name="API docs").click()
    expect(visitor.page).to_have_url(f"{visitor.base}/v1/docs")
    scroll_to(visitor, "/v1/whoami")
    visitor.page.screenshot(path=tmp_path / "docs.png")


def test_an_operation_of_the_docs_opens_and_can_be_tried(visitor: Visitor) -> None:
    visitor.page.goto(f"{visitor.base}/v1/docs")
    scroll_to(visitor, "/v1/auth/oauth/providers")
    visitor.page.get_by_text("/v1/auth/oauth/providers").first.click()
    visitor.page.get_by_role("button", name="Try it out").click()
    visitor.page.get_by_role("button", name="Execute").click()
    expect(visitor.page.locator(".live-responses-table").get_by_text("200")).to_be_visible()


def test_the_login_page_of_the_admin_is_styled_and_works(visitor: Visitor) -> None:
    visitor.page.goto(f"{visitor.base}/admin/login/")
    expect(visitor.page.get_by_label("Code")).to_be_visible()
    button = visitor.page.get_by_role("button", name="Log in")
    expect(button).to_be_visible()
    assert button.evaluate("node => getComputedStyle(node).borderRadius") != "0px"
