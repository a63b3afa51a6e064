"""In a browser: the frame of the pages, its navigation, environment and theme."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.console.browser import Visitor
from tests.console.journeys import sign_up

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]


def test_the_environment_is_always_in_view_and_has_a_colour_of_its_own(visitor: Visitor) -> None:
    sign_up(visitor)
    page = visitor.page
    frame, menu = page.locator("#inside"), page.locator("#environment-menu")
    expect(frame).to_have_attribute("data-place", "live")
    expect(page).to_have_title("Overview · Zonal · live")
    menu.locator("summary").click()
    visitor.press("sandbox")
    expect(page).to_have_title("Overview · Zonal · sandbox")
    expect(frame).to_have_attribute("data-place", "sandbox")
    page.mouse.wheel(0, 5000)
    expect(menu).to_be_in_viewport()


def test_the_chosen_theme_outlasts_the_page_and_follows_the_system_again(visitor: Visitor) -> None:
    visitor.page.emulate_media(color_scheme="light")
    sign_up(visitor)
    ground = "getComputedStyle(document.body).backgroundColor"
    light = visitor.page.evaluate(ground)
    button = visitor.page.get_by_role("button", name="Dark mode")
    button.click()
    dark = visitor.page.evaluate(ground)
    assert dark != light
    visitor.go("/console/members")
    expect(button).to_have_attribute("aria-pressed", "true")
    assert visitor.page.evaluate(ground) == dark
    button.click()
    assert visitor.page.evaluate(ground) == light
    visitor.page.emulate_media(color_scheme="dark")
    expect(button).to_have_attribute("aria-pressed", "true")


def test_on_a_phone_the_navigation_is_a_drawer(visit: Callable[..., Visitor]) -> None:
    visitor = visit(viewport={"width": 390, "height": 844})
    sign_up(visitor)
    page = visitor.page
    link = page.get_by_role("link", name="Members")
    expect(link).to_be_hidden()
    visitor.press("Navigation")
    expect(link).to_be_visible()
    page.keyboard.press("Escape")
    expect(link).to_be_hidden()
    expect(page.get_by_role("button", name="Navigation")).to_be_focused()
    visitor.press("Navigation")
    link.click()
    visitor.is_at("/console/members")
