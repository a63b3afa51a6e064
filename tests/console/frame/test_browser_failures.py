"""In a browser: calls that fail while a page is filled, refreshed or left."""

import json

import pytest
from playwright.sync_api import Route, expect

from tests.console.browser import Visitor
from tests.console.journeys import begin_app, code, sign_up

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]
COMPLIANCE = "**/v1/auth/2fa/compliance*"
HISTORY = "**/v1/cache/metrics/history*"
SENTENCE = "The service is at its limit."
NO_ANSWER = "No answer came within 60 seconds."
LIMIT_MS = 60_000


def refuse(route: Route, *, status: int = 503, problem_code: str = "overloaded") -> None:
    """Answer a call with a problem."""
    content = {"type": "about:blank", "title": SENTENCE, "status": status, "code": problem_code}
    route.fulfill(status=status, content_type="application/problem+json", body=json.dumps(content))


def leave_open(route: Route) -> None:
    """Never answer a call, as a frozen process."""


def turn_on_app(visitor: Visitor) -> None:
    """Set up an app, up to where the page is about to be refreshed."""
    visitor.go("/console/security")
    seed = begin_app(visitor)
    visitor.fill("Code", code(seed))
    visitor.press("Turn on")
    visitor.sees("Keep your backup codes")


def test_a_page_that_cannot_be_filled_says_why(visitor: Visitor) -> None:
    sign_up(visitor)
    problem = visitor.page.locator("#page-problem")
    for page, call in (
        ("", "**/v1/whoami"),
        ("security", "**/v1/auth/2fa/status"),
        ("account", "**/v1/auth/sessions*"),
        ("linked-accounts", "**/v1/auth/identities*"),
        ("members", "**/v1/members?*"),
        ("policy", COMPLIANCE),
        ("audit", "**/v1/audit*"),
        ("cache", HISTORY),
    ):
        visitor.page.route(call, refuse)
        visitor.go(f"/console/{page}")
        expect(problem, page).to_have_text(f"{SENTENCE} Try again")
        # No form that nothing is bound to: what is typed into it would go into the address.
        shown = visitor.page.locator("#main > *").locator("visible=true")
        expect(shown, page).to_have_count(1)
        visitor.page.unroute(call)
        visitor.press("Try again")
        expect(problem, page).to_be_hidden()
        expect(visitor.page.locator("h1"), page).to_be_visible()


def test_a_failed_refresh_is_reported_beside_the_action(visitor: Visitor) -> None:
    sign_up(visitor)
    turn_on_app(visitor)
    visitor.page.route("**/v1/auth/2fa/status", refuse)
    visitor.press("I have saved them")
    expect(visitor.page.locator("#factors [data-problem]")).to_have_text(SENTENCE)
    visitor.sees_status("Authenticator app is on.")


def test_leaving_during_a_refresh_shows_no_error(visitor: Visitor) -> None:
    sign_up(visitor)
    turn_on_app(visitor)
    waiting: list[Route] = []

    def keep(route: Route) -> None:
        waiting.append(route)

    visitor.page.route(COMPLIANCE, keep)
    with visitor.page.expect_request(COMPLIANCE):
        visitor.press("I have saved them")

    def end(route: Route) -> None:
        # The session's end overtakes the call that waits; the page may not hear of its own.
        answer = route.fetch()
        refuse(waiting.pop(), status=401, problem_code="session_revoked")
        route.fulfill(response=answer)

    visitor.page.route("**/v1/auth/logout", end)
    visitor.press("Sign out")
    visitor.is_at("/console/sign-in")
    assert waiting == []


def test_a_failed_sign_out_keeps_the_user_signed_in(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.go("/console/")
    visitor.page.route("**/v1/auth/logout", refuse)
    visitor.press("Sign out")
    visitor.sees_status(SENTENCE)
    visitor.page.unroute("**/v1/auth/logout")
    visitor.press("Sign out")
    visitor.is_at("/console/sign-in")


def test_a_user_whose_cookies_are_gone_is_signed_out(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.go("/console/")
    visitor.context.clear_cookies()
    visitor.press("Sign out")
    visitor.is_at("/console/sign-in")


def test_a_call_refused_by_a_new_policy_leads_to_set_up(visitor: Visitor) -> None:
    sign_up(visitor)

    def restrict(route: Route) -> None:
        refuse(route, status=403, problem_code="second_factor_due")

    visitor.page.route("**/v1/auth/sessions*", restrict)
    visitor.page.goto(f"{visitor.base}/console/account")
    visitor.is_at("/console/security")


def test_samples_that_cannot_be_loaded_are_reported_and_loaded_again(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.page.clock.install()
    visitor.go("/console/cache")
    visitor.page.route(HISTORY, refuse)
    visitor.page.clock.fast_forward(31_000)
    visitor.sees_status(SENTENCE)
    visitor.page.unroute(HISTORY)
    with visitor.page.expect_response(HISTORY):
        visitor.page.clock.fast_forward(31_000)


def test_a_page_that_gets_no_answer_says_so(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.page.clock.install()
    visitor.page.route("**/v1/whoami", leave_open)
    with visitor.page.expect_request("**/v1/whoami"):
        visitor.page.goto(f"{visitor.base}/console/audit")
    visitor.page.clock.fast_forward(LIMIT_MS)
    expect(visitor.page.locator("#page-problem")).to_have_text(f"{NO_ANSWER} Try again")


def test_a_list_that_gets_no_answer_is_tried_again(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.page.clock.install()
    visitor.go("/console/audit")
    visitor.page.route("**/v1/audit*", leave_open)
    with visitor.page.expect_request("**/v1/audit*"):
        visitor.field("Search").press("Enter")
    problem = visitor.page.locator("#events [data-problem]")
    expect(visitor.page.locator("#events")).to_have_attribute("aria-busy", "true")
    visitor.page.clock.fast_forward(LIMIT_MS)
    expect(problem).to_have_text(f"{NO_ANSWER} Try again")
    visitor.page.unroute("**/v1/audit*")
    visitor.press("Try again")
    expect(problem).to_be_hidden()
    expect(visitor.page.locator("#days li").first).to_be_visible()


def test_a_write_that_gets_no_answer_shows_what_is_stored_before_it_is_repeated(
    visitor: Visitor,
) -> None:
    sign_up(visitor)
    visitor.page.clock.install()
    visitor.go("/console/organization")

    def do_silently(route: Route) -> None:
        route.fetch()

    visitor.page.route("**/v1/organization", do_silently)
    visitor.fill("Name", "Lakes & Daughters")
    with visitor.page.expect_request("**/v1/organization"):
        visitor.press("Rename")
    visitor.page.clock.fast_forward(LIMIT_MS)
    sentence = f"{NO_ANSWER} It is not known whether this was done: reload the page to see."
    expect(visitor.page.locator("#rename-form [data-problem]")).to_have_text(
        f"{sentence} Reload the page"
    )
    visitor.page.unroute("**/v1/organization")
    visitor.press("Reload the page")
    visitor.settle()
    expect(visitor.field("Name")).to_have_value("Lakes & Daughters")
