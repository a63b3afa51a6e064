"""In a browser: expiry, refresh, environments, several tabs, SQL."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import Dialog, Request, Response, Route, expect
from pytest_django import Settings

from accounts.models import Session
from tests.console.browser import Visitor, watch
from tests.console.journeys import age_proofs, run_sql, sign_up, write_sql

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]

TWO_KEYS = """async () => {
  const { post } = await import("/static/console/lib/api.js");
  window.asked = ["first", "second"].map((name) =>
    post("/v1/api-keys", { name, role: "reader" }).then(
      () => "made",
      (error) => error.constructor.name,
    ),
  );
}"""
ENDS = """() => Promise.race([
  Promise.all(window.asked),
  new Promise((done) => setTimeout(done, 5000, "one waits for ever")),
])"""
REFRESH = "**/v1/auth/refresh"
SENTENCE = "The service is at its limit."
FIVE_CALLS = """async () => {
  const { get } = await import("/static/console/lib/api.js");
  const answers = await Promise.all(Array.from({ length: 5 }, () => get("/v1/whoami")));
  return answers.map((who) => who.email);
}"""


def problem(status: int, *, retry_after: str = "") -> dict[str, Any]:
    """Return a refusal that says nothing about who asked."""
    content = {"type": "about:blank", "title": SENTENCE, "status": status, "code": "overloaded"}
    headers = {"Content-Type": "application/problem+json"}
    if retry_after:
        headers["Retry-After"] = retry_after
    return {"status": status, "headers": headers, "body": json.dumps(content)}


def test_an_expired_token_is_refreshed_once_for_all_calls(
    visitor: Visitor, settings: Settings
) -> None:
    settings.ACCOUNTS = replace(settings.ACCOUNTS, access_ttl_s=2)
    sign_up(visitor)
    visitor.go("/console/")
    refreshes: list[str] = []

    def note(request: Request) -> None:
        if request.url.endswith("/v1/auth/refresh"):
            refreshes.append(request.url)

    visitor.page.on("request", note)
    visitor.page.wait_for_timeout(2200)
    settings.ACCOUNTS = replace(settings.ACCOUNTS, access_ttl_s=900)
    assert visitor.page.evaluate(FIVE_CALLS) == ["dora@example.com"] * 5
    assert len(refreshes) == 1
    assert Session.objects.get().generation == 1 + Session.objects.get().previous_generation


def test_one_proof_is_asked_for_by_all_calls(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.go("/console/")
    age_proofs()
    visitor.page.evaluate(TWO_KEYS)
    expect(visitor.page.locator("#step-up")).to_be_visible()
    visitor.fill("Password", "seven quiet lakes")
    visitor.press("Confirm")
    assert visitor.page.evaluate(ENDS) == ["made", "made"]

    age_proofs()
    refused: list[Response] = []

    def is_second(answer: Response) -> bool:
        refused.append(answer)
        return len(refused) == 2

    with visitor.page.expect_response(is_second):
        visitor.page.evaluate(TWO_KEYS)
    expect(visitor.page.locator("#step-up")).to_be_visible()
    visitor.page.locator("#step-up-cancel").click()
    assert visitor.page.evaluate(ENDS) == ["Cancelled", "Cancelled"]


def test_a_session_that_cannot_be_refreshed_leads_to_the_sign_in(
    visitor: Visitor, settings: Settings
) -> None:
    settings.ACCOUNTS = replace(settings.ACCOUNTS, access_ttl_s=1)
    sign_up(visitor)
    visitor.page.wait_for_timeout(1200)
    Session.objects.all().delete()
    visitor.page.goto(f"{visitor.base}/console/security")
    visitor.is_at("/console/sign-in?next=%2Fconsole%2Fsecurity")


PASSING_FAILURES: dict[str, dict[str, Any] | None] = {
    "no answer": None,
    "a proxy's page": {"status": 502, "content_type": "text/html", "body": "<h1>Bad Gateway</h1>"},
    "a limit": problem(429, retry_after="60"),
    "an outage": problem(503),
}


def test_a_refresh_that_fails_for_the_moment_keeps_the_page_and_the_session(
    visitor: Visitor, settings: Settings
) -> None:
    settings.ACCOUNTS = replace(settings.ACCOUNTS, access_ttl_s=1)
    sign_up(visitor)
    visitor.go("/console/members")
    visitor.press("Invite members")
    visitor.fill("E-mail addresses", "colleague@example.com")
    visitor.page.wait_for_timeout(1200)
    answer: dict[str, Any] | None = None

    def fail(route: Route) -> None:
        if answer:
            route.fulfill(**answer)
        else:
            route.abort()

    visitor.page.route(REFRESH, fail)
    for failure, answer in PASSING_FAILURES.items():  # noqa: B007 - the route reads it
        with visitor.page.expect_request(REFRESH):
            visitor.press("Send invitations")
        visitor.settle()
        expect(visitor.page.locator("#invite [data-problem]"), failure).not_to_be_empty()
        expect(visitor.field("E-mail addresses"), failure).to_have_value("colleague@example.com")
    visitor.page.unroute(REFRESH)
    settings.ACCOUNTS = replace(settings.ACCOUNTS, access_ttl_s=900)
    visitor.press("Send invitations")
    visitor.sees("colleague@example.com")
    visitor.faults[:] = [each for each in visitor.faults if "Failed to load" not in each]
    visitor.is_at("/console/members")


def test_a_refresh_waits_as_long_as_the_service_asks_for(
    visitor: Visitor, settings: Settings
) -> None:
    settings.ACCOUNTS = replace(settings.ACCOUNTS, access_ttl_s=1)
    sign_up(visitor)
    visitor.go("/console/")
    visitor.page.wait_for_timeout(1200)
    settings.ACCOUNTS = replace(settings.ACCOUNTS, access_ttl_s=900)
    refused: list[str] = []

    def refuse_once(route: Route) -> None:
        if refused:
            route.continue_()
            return
        refused.append(route.request.url)
        route.fulfill(**problem(503, retry_after="1"))

    visitor.page.route(REFRESH, refuse_once)
    assert visitor.page.evaluate(FIVE_CALLS) == ["dora@example.com"] * 5
    assert len(refused) == 1


def test_the_sign_in_page_says_that_it_could_not_ask(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.page.route("**/v1/whoami", lambda route: route.fulfill(**problem(503)))
    visitor.go("/console/sign-in")
    expect(visitor.page.locator("#sign-in [data-problem]")).to_have_text(SENTENCE)


def test_switching_changes_every_tab(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.go("/console/")
    other = visitor.context.new_page()
    watch(other, visitor.faults)
    other.goto(f"{visitor.base}/console/sql")
    expect(other.locator(".where")).to_have_text("live")
    visitor.page.locator("#environment-menu summary").click()
    visitor.press("sandbox")
    expect(visitor.page.locator("#environment-menu summary")).to_contain_text("sandbox")
    expect(other.locator(".where")).to_have_text("sandbox")
    assert Session.objects.filter(ended_at=None).get().environment.slug == "sandbox"


def test_a_tab_that_stays_calls_nothing_in_the_other_environment(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.go("/console/")
    other = visitor.context.new_page()
    other.goto(f"{visitor.base}/console/sql")
    expect(other.locator(".where")).to_have_text("live")
    # As while files are uploaded: the browser asks, and the visitor stays.
    other.evaluate("addEventListener('beforeunload', (event) => event.preventDefault())")
    other.locator(".where").click()
    other.on("dialog", lambda dialog: dialog.dismiss())
    visitor.page.locator("#environment-menu summary").click()
    visitor.press("sandbox")
    expect(visitor.page.locator("#environment-menu summary")).to_contain_text("sandbox")

    other.get_by_role("button", name="Run", exact=True).click()
    expect(other.locator("#sql-problem")).to_contain_text("Reload this page")
    expect(other.locator(".where")).to_have_text("live")


def test_who_switches_or_signs_out_during_a_write_is_asked_before_it(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.go("/console/sql")
    page = visitor.page
    # It never gets an answer.
    page.route(re.compile("/v1/sql$"), lambda route: None)
    run_sql(visitor, "CREATE TABLE slow AS SELECT 1")
    running = page.locator("#cancel")
    expect(running).to_be_visible()
    asked: list[str] = []

    def leave(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.accept()

    page.on("dialog", leave)
    visitor.press("Sign out")
    visitor.agrees("Cancel")
    page.locator("#environment-menu summary").click()
    visitor.press("sandbox")
    expect(page.get_by_role("alertdialog")).to_contain_text("Switch to sandbox now?")
    visitor.agrees("Cancel")
    expect(running).to_be_visible()
    assert Session.objects.get(ended_at=None).environment.slug == "live"

    page.locator("#environment-menu summary").click()
    visitor.press("sandbox")
    visitor.agrees("Switch")
    expect(page.locator("#environment-menu summary")).to_contain_text("sandbox")
    # The browser does not ask again.
    assert asked == []
    page.unroute_all(behavior="ignoreErrors")


@pytest.mark.parametrize("act", ["switch", "sign out"])
def test_a_page_that_stays_after_all_calls_nothing_any_more(visitor: Visitor, act: str) -> None:
    sign_up(visitor)
    visitor.go("/console/sql")
    page = visitor.page
    write_sql(visitor, "SELECT 1")
    page.evaluate("addEventListener('beforeunload', (event) => event.preventDefault())")
    page.on("dialog", lambda dialog: dialog.dismiss())
    with page.expect_event("dialog"):
        if act == "switch":
            page.locator("#environment-menu summary").click()
            visitor.press("sandbox")
        else:
            visitor.press("Sign out")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url))
    visitor.press("Run")
    expect(page.locator("#sql-problem")).to_contain_text("Reload this page")
    assert sent == []


def test_a_page_whose_switch_has_no_answer_calls_nothing_until_it_is_loaded_anew(
    visitor: Visitor,
) -> None:
    sign_up(visitor)
    visitor.go("/console/sql")
    page = visitor.page

    def lose(route: Route) -> None:
        route.fetch()
        route.abort()

    page.route("**/v1/auth/switch", lose)
    page.locator("#environment-menu summary").click()
    visitor.press("sandbox")
    visitor.sees_status("The service cannot be reached.")
    visitor.faults.clear()
    visitor.press("Run")
    expect(page.locator("#sql-problem")).to_contain_text("Reload this page")
    visitor.go("/console/sql")
    expect(page.locator("#environment-menu summary")).to_contain_text("sandbox")


def test_calls_wait_for_a_switch_and_go_on_where_it_is_refused(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.go("/console/sql")
    page = visitor.page
    write_sql(visitor, "SELECT 40 + 2 AS n")
    asked: list[Route] = []
    page.route("**/v1/auth/switch", lambda route: asked.append(route))  # noqa: PLW0108 - Playwright marks it
    page.locator("#environment-menu summary").click()
    with page.expect_request("**/v1/auth/switch"):
        visitor.press("sandbox")
    visitor.press("Run")
    visitor.sees("Cancel")
    asked[0].fulfill(status=429, json={"status": 429, "code": "x", "title": SENTENCE})
    visitor.sees_status(SENTENCE)
    expect(page.get_by_role("gridcell", name="42")).to_be_visible()


def test_escape_closes_the_menu(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.go("/console/")
    summary = visitor.page.locator("#environment-menu summary")
    summary.focus()
    visitor.page.keyboard.press("Enter")
    expect(visitor.page.get_by_role("button", name="sandbox")).to_be_visible()
    visitor.page.keyboard.press("Escape")
    expect(visitor.page.get_by_role("button", name="sandbox")).to_be_hidden()
    expect(summary).to_be_focused()


def test_signing_out_in_one_tab_signs_out_all_tabs(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.go("/console/")
    other = visitor.context.new_page()
    watch(other, visitor.faults)
    other.goto(f"{visitor.base}/console/security")
    expect(other.get_by_role("heading", name="Second factor")).to_be_visible()
    other.evaluate("sessionStorage.setItem('zonal-draft:of a form', 'typed there')")
    visitor.press("Sign out")
    expect(other).to_have_url(f"{visitor.base}/console/sign-in?next=%2Fconsole%2Fsecurity")
    assert other.evaluate("sessionStorage.getItem('zonal-draft:of a form')") is None
