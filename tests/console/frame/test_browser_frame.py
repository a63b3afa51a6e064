"""In a browser: the frame of the pages, its navigation, environment and theme."""

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from environments.models import Environment, Organization
from tests.console.browser import Visitor
from tests.console.journeys import sign_up
from tests.console.layout import ON_BOTH_SIZES, OVERFLOWING

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]


def test_the_environment_is_always_in_view_and_has_a_colour_of_its_own(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.go("/console/")
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
    visitor.go("/console/")
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
    visitor.go("/console/")
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


@ON_BOTH_SIZES
def test_names_and_messages_of_any_length_stay_on_the_screen(visitor: Visitor) -> None:
    sign_up(visitor)
    Organization.objects.update(name="O" * 200)
    for environment in Environment.objects.all():
        environment.name = environment.slug.upper() + "W" * (100 - len(environment.slug))
        environment.save()
    page = visitor.page
    for path in ("sql", "tables", "api-keys", "environments"):
        visitor.go(f"/console/{path}")
        expect(page.get_by_role("button", name="Search")).to_be_in_viewport(ratio=1)
        page.locator("#environment-menu summary").click()
        assert page.evaluate(OVERFLOWING) == [False], path
    body = json.dumps({"title": "x" * 3000, "code": "overloaded"})
    page.route("**/v1/auth/switch", lambda route: route.fulfill(status=503, body=body))
    page.locator("#environments button:not([aria-current])").first.click()
    visitor.sees_status("xxx")
    assert page.evaluate(OVERFLOWING) == [False]
    expect(page.locator("#status")).to_be_in_viewport(ratio=1)


def test_on_paper_is_what_the_page_shows_and_where(visitor: Visitor) -> None:
    sign_up(visitor)
    page = visitor.page
    for path in ("members", "audit", "webhooks"):
        visitor.go(f"/console/{path}")
        page.emulate_media(media="print", color_scheme="dark")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.locator("#inside .bar")).to_contain_text("live")
        pressed = page.locator(".sidebar, form, .tools, .actions button, .title button")
        expect(pressed.locator("visible=true")).to_have_count(0)
        page.emulate_media(media="screen")
