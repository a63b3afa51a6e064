"""What every page is held to: accessible, within a narrow screen, fields that browsers know."""

import pytest

from tests.console.accessibility import violations
from tests.console.browser import SCHEMES, Visitor

NARROW = {"viewport": {"width": 390, "height": 844}}
WIDE = {"viewport": {"width": 1440, "height": 900}}
# The main journey of each page goes on both.
SIZES = {"wide": WIDE, "narrow": NARROW}
ON_BOTH_SIZES = pytest.mark.parametrize("visitor", SIZES, indirect=True)

OVERFLOWING = """() => {
  const width = document.documentElement.clientWidth;
  const scrolls = (element) => element.closest(".scroll, .visually-hidden, .skip");
  const wide = [...document.body.querySelectorAll("*")].filter(
    (element) => element.getBoundingClientRect().right > width + 0.5 && !scrolls(element),
  );
  return [document.documentElement.scrollWidth > width, ...wide.map((each) => each.outerHTML)];
}"""

# Fields without autocomplete, about which browsers and password managers know nothing.
WITHOUT_AUTOCOMPLETE = """() => [...document.querySelectorAll("input")]
  .filter((each) => !["checkbox", "radio", "number"].includes(each.type) && !each.autocomplete)
  .map((each) => each.outerHTML)"""


def hold(visitor: Visitor, where: str) -> None:
    """Assert the accessibility and the layout of the page shown."""
    hold_panel(visitor, where)
    assert visitor.page.evaluate(WITHOUT_AUTOCOMPLETE) == [], where
    assert len(visitor.page.locator("h1:visible").all()) == 1, where


def hold_panel(visitor: Visitor, where: str, *, within: str = "") -> None:
    """Assert the same of a panel, which has its own heading; the rules, of a part of the page."""
    for scheme in SCHEMES:
        visitor.page.emulate_media(color_scheme=scheme)
        found = violations(visitor.page, scheme=scheme, within=within)
        assert found == [], f"{where}, {scheme}"
    assert visitor.page.evaluate(OVERFLOWING) == [False], where
