"""In a browser: use by keyboard, on a narrow screen, with contrast in light and dark mode."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.platform_site.console.browser import SCHEMES, Visitor
from tests.platform_site.console.journeys import (
    EMAIL,
    PASSWORD,
    next_code,
    set_up_app,
    sign_out,
    sign_up,
)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]

OUTSIDE = [
    "sign-in",
    "sign-up",
    "invitation",
    "email-change/cancel",
    "recovery",
    "recovery/cancel",
    "no-such-page",
]
INSIDE = ["", "security", "account", "linked-accounts", "members", "policy", "audit", "cache"]
NARROW = {"viewport": {"width": 360, "height": 740}}

OVERFLOWING = """() => {
  const width = document.documentElement.clientWidth;
  const scrolls = (element) => element.closest(".scroll, .visually-hidden, .skip");
  const wide = [...document.body.querySelectorAll("*")].filter(
    (element) => element.getBoundingClientRect().right > width + 0.5 && !scrolls(element),
  );
  return [document.documentElement.scrollWidth > width, ...wide.map((each) => each.outerHTML)];
}"""

# Contrast of every visible text with what lies behind it (WCAG 2.2, 1.4.3).
PALE = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => {
    const line = [r, g, b].map((value) => value / 255);
    const [x, y, z] = line.map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = rgb(getComputedStyle(each).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return rgb("white");
  };
  const texts = [...document.body.querySelectorAll("*")].filter(
    (each) =>
      each.checkVisibility({ visibilityProperty: true, opacityProperty: true }) &&
      !each.closest(".visually-hidden, [disabled], :disabled") &&
      [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim()),
  );
  return texts.flatMap((each) => {
    const [a, b] = [light(rgb(getComputedStyle(each).color)), light(behind(each))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    return ratio < 4.5 ? [`${ratio.toFixed(2)} ${each.outerHTML.slice(0, 120)}`] : [];
  });
}"""

# Fields without autocomplete, about which browsers and password managers know nothing.
WITHOUT_AUTOCOMPLETE = """() => [...document.querySelectorAll("input")]
  .filter((each) => !["checkbox", "radio", "number"].includes(each.type) && !each.autocomplete)
  .map((each) => each.outerHTML)"""

NAMELESS = """() => [...document.querySelectorAll("input, select, textarea, button")]
  .filter((each) => each.checkVisibility())
  .filter((each) => !each.labels?.length && !each.textContent.trim() && !each.ariaLabel)
  .map((each) => each.outerHTML)"""

TWICE = """() => [...document.querySelectorAll("[id]")].map((each) => each.id)
  .filter((id, index, all) => all.indexOf(id) !== index)"""


def hold(visitor: Visitor, where: str) -> None:
    """Assert the accessibility and the layout of the page shown."""
    for scheme in SCHEMES:
        visitor.page.emulate_media(color_scheme=scheme)
        assert visitor.page.evaluate(PALE) == [], f"{where}, {scheme}"
    assert visitor.page.evaluate(OVERFLOWING) == [False], where
    assert visitor.page.evaluate(NAMELESS) == [], where
    assert visitor.page.evaluate(WITHOUT_AUTOCOMPLETE) == [], where
    assert visitor.page.evaluate(TWICE) == [], where
    assert len(visitor.page.locator("h1:visible").all()) == 1, where


@pytest.mark.parametrize("path", OUTSIDE)
def test_a_page_before_signing_in_fits_a_narrow_screen(
    visit: Callable[..., Visitor], path: str
) -> None:
    visitor = visit(**NARROW)
    visitor.page.goto(f"{visitor.base}/console/{path}")
    visitor.settle()
    hold(visitor, path)


def test_every_page_fits_a_narrow_screen(
    visit: Callable[..., Visitor], picture: Callable[[Page, str], None]
) -> None:
    visitor = visit(**NARROW)
    sign_up(visitor)
    hold(visitor, "home")
    visitor.page.get_by_label("Query in").fill(
        "SELECT repeat('x', 300) AS a_name_that_is_longer_than_the_screen, 2 AS b"
    )
    visitor.press("Run")
    expect(visitor.page.locator("#result-table")).to_be_visible()
    hold(visitor, "rows")
    for path in INSIDE:
        visitor.go(f"/console/{path}")
        hold(visitor, path)
        picture(visitor.page, f"{path or 'home'}-narrow")
    visitor.go("/console/security")
    visitor.press("Set up: Authenticator app")
    expect(visitor.page.locator("#totp-qr")).to_be_visible()
    hold_panel(visitor, "authenticator app")
    visitor.go("/console/security")
    set_up_app(visitor)
    visitor.press("Generate new codes")
    visitor.agrees("Generate new codes")
    visitor.sees("Keep your backup codes")
    hold_panel(visitor, "backup codes")


def hold_panel(visitor: Visitor, where: str) -> None:
    """Assert the same of a panel, which has its own heading."""
    assert visitor.page.evaluate(OVERFLOWING) == [False], where
    assert visitor.page.evaluate(NAMELESS) == [], where
    for scheme in SCHEMES:
        visitor.page.emulate_media(color_scheme=scheme)
        assert visitor.page.evaluate(PALE) == [], f"{where}, {scheme}"


def test_signing_in_works_by_keyboard_alone(visitor: Visitor) -> None:
    sign_up(visitor)
    seed, _ = set_up_app(visitor)
    sign_out(visitor)
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
