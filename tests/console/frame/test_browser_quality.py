"""In a browser: use by keyboard, on a narrow screen, with contrast in light and dark mode."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from console.pages import BY_LINK, ENTRANCE, NAVIGATION
from tests.console.browser import Visitor
from tests.console.journeys import (
    EMAIL,
    PASSWORD,
    add_account,
    next_code,
    run_sql,
    set_up_app,
    sign_up,
    with_app,
)
from tests.console.layout import NARROW, hold, hold_panel

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]

OUTSIDE = [*(page.address for page in ENTRANCE), "no-such-page"]
INSIDE = [page.address for group in NAVIGATION for page in group.pages]
INSIDE += [page.address for page in BY_LINK]


def test_every_page_before_signing_in_fits_a_narrow_screen(visit: Callable[..., Visitor]) -> None:
    visitor = visit(**NARROW)
    for path in OUTSIDE:
        visitor.page.goto(f"{visitor.base}/console/{path}")
        visitor.settle()
        hold(visitor, path)


def test_every_page_fits_a_narrow_screen(
    visit: Callable[..., Visitor], picture: Callable[[Page, str], None]
) -> None:
    visitor = visit(**NARROW)
    sign_up(visitor)
    visitor.go("/console/sql")
    run_sql(
        visitor,
        "CREATE TABLE lakes (id int PRIMARY KEY, name text); INSERT INTO lakes VALUES (1, NULL);"
        "SELECT repeat('x', 300) AS a_name_that_is_longer_than_the_screen, 2 AS b",
    )
    expect(visitor.page.get_by_role("gridcell").first).to_be_visible()
    hold(visitor, "rows")
    for path in INSIDE:
        visitor.go(f"/console/{path}")
        hold(visitor, path)
        picture(visitor.page, f"{path or 'home'}-narrow")
    visitor.go("/console/security")
    visitor.press("Set up: Authenticator app")
    expect(visitor.page.locator("#totp-qr")).to_be_visible()
    hold_panel(visitor, "authenticator app")
    visitor.press("Cancel")
    set_up_app(visitor)
    visitor.press("Generate new codes")
    visitor.agrees("Generate new codes")
    visitor.sees("Keep your backup codes")
    hold_panel(visitor, "backup codes")


def test_every_page_is_accessible_on_a_wide_screen(visit: Callable[..., Visitor]) -> None:
    visitor = visit(viewport={"width": 1440, "height": 900})
    sign_up(visitor)
    for path in INSIDE:
        visitor.go(f"/console/{path}")
        hold(visitor, path)


def test_signing_in_works_by_keyboard_alone(visitor: Visitor) -> None:
    add_account()
    seed = with_app().seed
    visitor.go("/console/sign-in")
    keyboard = visitor.page.keyboard
    expect(visitor.page.get_by_label("E-mail")).to_be_focused()
    keyboard.type(EMAIL)
    keyboard.press("Tab")
    keyboard.type(PASSWORD)
    keyboard.press("Enter")
    field = visitor.field("Code")
    expect(field).to_be_focused()
    keyboard.type(next_code(seed))
    keyboard.press("Tab")
    expect(visitor.page.get_by_label("Trust this device")).to_be_focused()
    keyboard.press("Space")
    keyboard.press("Tab")
    expect(visitor.page.get_by_role("button", name="Verify")).to_be_focused()
    keyboard.press("Enter")
    visitor.is_at("/console/")
    keyboard.press("Tab")
    expect(visitor.page.get_by_role("link", name="Skip to content")).to_be_focused()
    keyboard.press("Enter")
    expect(visitor.page.locator("#main")).to_be_focused()


def test_the_focus_is_visible_and_moves_to_the_next_question(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.go("/console/security")
    button = visitor.page.get_by_role("button", name="Set up: Authenticator app")
    button.focus()
    visitor.page.keyboard.press("Shift+Tab")
    visitor.page.keyboard.press("Tab")
    assert button.evaluate("(each) => getComputedStyle(each).outlineStyle") == "solid"
    visitor.page.keyboard.press("Enter")
    expect(
        visitor.page.get_by_role("heading", name="Set up your authenticator app")
    ).to_be_focused()


def test_the_fields_declare_their_autocomplete_purpose(visitor: Visitor) -> None:
    visitor.go("/console/sign-in")
    kinds = visitor.page.locator("input[autocomplete]").evaluate_all(
        "(all) => Object.fromEntries(all.map((each) => [each.id, each.autocomplete]))"
    )
    assert kinds["email"] == "username webauthn"
    assert kinds["password"] == "current-password"
    assert kinds["code"] == "one-time-code"
    visitor.go("/console/sign-up")
    expect(visitor.page.get_by_label("Password", exact=True)).to_have_attribute(
        "autocomplete", "new-password"
    )
