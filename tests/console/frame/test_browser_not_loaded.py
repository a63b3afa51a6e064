"""In a browser: a page of which something does not load says so, and can be loaded again."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from accounts.models import Session
from tests.console.browser import Visitor, held
from tests.console.journeys import sign_up
from tests.console.layout import NARROW, ON_BOTH_SIZES, hold_panel

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]
MESSAGE = "This page has not loaded completely. Load it again"
# Of the page alone, of one that others import, of the frame's own.
FILES = [
    r"/members/members\b.*\.js",
    r"/lib/dom\b.*\.js",
    r"/css/forms\b.*\.css",
    r"/(not_loaded|members)\b.*\.js",
    r"/base\b.*\.css",
    r"\.js",
]


def fail(page: Page, files: str) -> None:
    """Let the requests for some files fail, as while a release is in progress."""
    page.route(re.compile(files), lambda route: route.fulfill(status=503, body=""))


def end_wait(page: Page) -> None:
    """Let the seconds pass after which a page takes long."""
    page.locator("#not-loaded").evaluate("each => each.getAnimations().forEach(a => a.finish())")


@ON_BOTH_SIZES
def test_a_page_without_one_of_its_files_says_so_and_is_loaded_again(visitor: Visitor) -> None:
    sign_up(visitor)
    page = visitor.page
    for files in FILES:
        fail(page, files)
        page.goto(f"{visitor.base}/console/members")
        end_wait(page)
        expect(page.get_by_role("alert").locator("visible=true")).to_have_text(MESSAGE)
        expect(page.locator("#not-loaded")).to_be_in_viewport()
        page.unroute(re.compile(files))
        page.get_by_role("link", name="Load it again").click()
        expect(page.locator("#member-list")).to_contain_text("dora@example.com")
        expect(page.locator("#not-loaded")).to_be_hidden()
        visitor.settle()


def test_an_answer_that_never_comes_is_asked_for_again(visitor: Visitor) -> None:
    sign_up(visitor)
    page = visitor.page
    with held(visitor, "/v1/whoami"):
        page.goto(f"{visitor.base}/console/members")
        expect(page.locator(".skeleton")).to_be_visible()
        expect(page.get_by_role("heading", name="Members")).to_be_visible()
        expect(page.locator("#not-loaded")).to_be_hidden()
        end_wait(page)
        expect(page.locator("#not-loaded")).to_be_visible()
        hold_panel(visitor, "a page that takes long")
    visitor.settle()
    expect(page.locator("#not-loaded, .skeleton").locator("visible=true")).to_have_count(0)


def test_signing_out_works_without_the_page_s_module(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.go("/console/")
    page = visitor.page
    page.evaluate("localStorage.setItem('zonal-draft:1:sql', 'SELECT 1')")
    fail(page, r"/members/members\b.*\.js")
    page.goto(f"{visitor.base}/console/members")
    fail(page, "/v1/auth/logout")
    visitor.press("Sign out")
    visitor.sees_status("You are still signed in")
    page.unroute(re.compile("/v1/auth/logout"))
    visitor.press("Sign out")
    visitor.is_at("/console/sign-in")
    assert not Session.objects.filter(ended_at=None).exists()
    assert page.evaluate("Object.keys(localStorage)") == []


def test_the_code_editor_can_be_loaded_again_and_nothing_is_lost(visitor: Visitor) -> None:
    sign_up(visitor)
    page = visitor.page
    fail(page, r"/code_editor\b.*\.js")
    visitor.go("/console/sql")
    page.get_by_role("textbox", name="SQL").fill("SELECT 6 * 7 AS answer")
    expect(page.locator("#not-loaded")).to_be_visible()
    visitor.press("Run")
    expect(page.get_by_role("gridcell", name="42")).to_be_visible()
    page.unroute(re.compile(r"/code_editor\b.*\.js"))
    page.get_by_role("link", name="Load it again").click()
    expect(page.locator(".cm-content")).to_contain_text("SELECT 6 * 7 AS answer")


@pytest.mark.parametrize("path", ["members", "sign-in"])
def test_without_scripts_a_page_says_first_that_it_needs_them(
    visit: Callable[..., Visitor], path: str
) -> None:
    visitor = visit(java_script_enabled=False, **NARROW)
    visitor.page.goto(f"{visitor.base}/console/{path}")
    first = visitor.page.locator("body > :first-child > p")
    expect(first).to_have_text("These pages need JavaScript: they call the public API with it.")
    expect(first).to_be_in_viewport()
    expect(visitor.page.locator(".skeleton, #not-loaded").locator("visible=true")).to_have_count(0)
