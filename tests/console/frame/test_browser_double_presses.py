"""In a browser: whatever is pressed twice, on whatever page, sends one request."""

from typing import Final

import pytest
from playwright.sync_api import expect
from pytest_django.fixtures import Settings

from billing.errors import TopUpsUnavailable
from console.pages import ENTRANCE, NAVIGATION
from tests.console.browser import Visitor
from tests.console.journeys import post, sign_up, write_sql
from tests.console.presses import Presses

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]

# What gives the pages rows with buttons of their own.
ROWS: Final = {
    "/v1/environments": {"id": "staging", "name": "Staging"},
    "/v1/invitations": {"email": "bob@example.com", "roles": ["reader"]},
    "/v1/api-keys": {"name": "nightly", "role": "reader", "scopes": ["sql:read"]},
    "/v1/sql/queries": {"name": "Totals", "query": "SELECT 1"},
}
# Forms that the walk is known to reach; the others need a bucket, a second factor or a link.
SIGNED_IN: Final = {
    "api-key-form",
    "code-form",
    "create-form",
    "delete-form",
    "domain-form",
    "email-form",
    "invite",
    "member-form",
    "method-form",
    "password-form",
    "policy-form",
    "register-form",
    "rename-form",
    "save-form",
    "sms-form",
    "spend-cap-form",
    "top-up-form",
    "webhook-form",
}
BEFORE: Final = {"cancel-form", "sign-in", "sign-up", "start-form", "token-form"}


def no_checkout(*_: object, **__: object) -> None:
    """Sell nothing: the press of the button is what counts."""
    raise TopUpsUnavailable


def test_a_double_press_sends_one_request(visitor: Visitor, settings: Settings) -> None:
    settings.TOP_UP_PROVIDER = f"{__name__}.no_checkout"
    sign_up(visitor)
    for path, body in ROWS.items():
        assert post(visitor, path, body).ok, path
    presses = Presses(visitor)
    for group in NAVIGATION:
        for page in group.pages:
            presses.walk(f"/console/{page.address}")
    assert presses.sent >= SIGNED_IN
    assert presses.repeated == []


def test_a_double_press_before_signing_in_sends_one_request(visitor: Visitor) -> None:
    presses = Presses(visitor)
    for page in ENTRANCE:
        presses.walk(f"/console/{page.address}")
    assert presses.sent >= BEFORE
    assert presses.repeated == []


def test_a_statement_runs_once_for_a_double_click_and_a_key_held_down(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.go("/console/sql")
    asked: list[str] = []
    visitor.page.on("request", lambda request: asked.append(request.url))
    write_sql(visitor, "SELECT 1 AS once")
    run = visitor.page.get_by_role("button", name="Run", exact=True)
    cell = visitor.page.get_by_role("gridcell", name="1", exact=True)
    run.click()
    expect(cell).to_be_visible()
    # The second click of a double click, after the answer.
    visitor.page.mouse.down(click_count=2)
    visitor.page.mouse.up(click_count=2)
    write_sql(visitor, "SELECT 2 AS twice")
    visitor.page.keyboard.down("Control")
    visitor.page.keyboard.down("Enter")
    expect(visitor.page.get_by_role("gridcell", name="2", exact=True)).to_be_visible()
    visitor.page.keyboard.down("Enter")
    write_sql(visitor, "SELECT 3 AS last")
    visitor.press("Run")
    expect(visitor.page.get_by_role("gridcell", name="3", exact=True)).to_be_visible()
    assert len([url for url in asked if url.endswith("/v1/sql")]) == 3
