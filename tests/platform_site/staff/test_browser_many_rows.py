"""In a browser: lists of 1,003 rows do what they offer, by mouse and by keys."""

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from accounts.models import User
from environments.models import Organization
from tests.cast import organization
from tests.console.accessibility import violations
from tests.console.browser import SCHEMES, Visitor
from tests.platform_site.staff.test_browser_billing import look
from tests.platform_site.staff.test_browser_quality import SCROLLS

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

MANY = 1_003
RED = "rgb(185, 28, 28)"


def users(number: int, *, domain: str = "example.com", is_active: bool = True) -> Organization:
    """Add users of a new organization; return it."""
    home = organization("Lakes and Rivers Limited")
    User.objects.bulk_create(
        (
            User(organization=home, email=f"person{n}@{domain}", is_active=is_active)
            for n in range(number)
        ),
        5000,
    )
    return home


def boxes(page: Page, *, state: str = "") -> Locator:
    """Return the check boxes of the rows, all or those that are checked."""
    return page.locator(f"input.action-select{state}")


def chosen_action(page: Page, name: str) -> None:
    """Run an action on the chosen rows."""
    page.locator("select[name=action]").select_option(name)
    page.get_by_role("button", name="Run").click()


def test_a_list_of_many_rows_offers_what_it_does(staff: Visitor) -> None:
    page = staff.page
    users(MANY - 1)
    page.goto(f"{staff.base}/admin/accounts/user/")
    expect(page.get_by_role("heading", name="Users")).to_be_visible()
    staff.sees("1,003 users")
    expect(page.get_by_text("Show all")).to_have_count(0)
    look(page)

    # An action takes 100 rows: a page of them, never all.
    page.set_viewport_size({"width": 1440, "height": 900})
    page.get_by_label("Select all objects on this page for an action").check()
    staff.sees("50 of 50 selected")
    expect(page.get_by_text("Select all 1")).to_have_count(0)
    look(page)
    chosen_action(page, "disable")
    button = page.get_by_role("button", name="Disable", exact=True)
    expect(button).to_have_css("background-color", RED)
    look(page)
    page.get_by_role("link", name="Cancel").click()
    expect(boxes(page, state=":checked")).to_have_count(50)
    staff.sees("50 of 50 selected")

    # The last page has the last rows, and nothing leads nowhere.
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="21").click()
    expect(boxes(page)).to_have_count(3)
    pages = page.get_by_role("navigation", name="Pages")
    expect(pages.locator("[aria-current=page]")).to_have_text("21")
    expect(pages.get_by_role("link", name="…")).to_have_count(0)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.get_by_role("link", name="Email", exact=True).click()
    expect(page.locator("tbody th").first).to_have_text("person0@example.com")


def test_all_of_a_short_list_are_chosen_where_an_action_takes_them(staff: Visitor) -> None:
    page, home = staff.page, users(60, is_active=False)
    page.goto(f"{staff.base}/admin/accounts/user/?organization__id__exact={home.pk}")
    expect(page.locator("tbody .field-state", has_text="disabled")).to_have_count(50)
    page.get_by_label("Select all objects on this page for an action").check()
    page.get_by_role("link", name="Select all 60 users").click()
    staff.sees("All 60 selected")
    look(page)
    chosen_action(page, "enable")
    expect(page.locator(".staff-rows li")).to_have_count(60)
    staff.fill("Reason", "asked by phone")
    staff.press("Enable")
    staff.sees("Enable: done for 60 of 60.")
    expect(page.locator("tbody .field-state", has_text="active")).to_have_count(50)
    look(page)
    page.get_by_role("link", name="Show all", exact=True).click()
    expect(boxes(page)).to_have_count(60)


def test_from_the_page_of_a_row_staff_return_to_it(staff: Visitor) -> None:
    page, home = staff.page, users(1)
    path = f"/admin/accounts/user/{User.objects.get(organization=home).pk}/change/"
    page.goto(staff.base + path)
    disable = page.get_by_role("button", name="Disable…")
    expect(disable).to_have_css("color", RED)
    disable.click()
    page.get_by_role("link", name="Cancel").click()
    expect(page).to_have_url(staff.base + path)
    staff.press("Disable…")
    staff.fill("Reason", "asked by phone")
    staff.press("Disable")
    staff.sees("Disable: done for 1 of 1.")
    expect(page).to_have_url(staff.base + path)


@pytest.mark.parametrize("width", [390, 1440])
def test_an_organization_is_found_by_a_member_and_the_filters_by_keys(
    staff: Visitor, width: int
) -> None:
    page, home = staff.page, users(3, domain="lakes.example")
    organization("Meadows Limited")
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(f"{staff.base}/admin/environments/organization/")
    search = page.get_by_placeholder("Name, number, or a member's address")
    search.fill("Person2@Lakes.example")
    search.press("Enter")
    staff.sees("1 organization")
    expect(page.get_by_role("link", name=home.name)).to_be_visible()

    search.fill("Nobody's")
    search.press("Enter")
    staff.sees("Nothing matches")
    staff.sees("No organization matches the search and the filters.")
    expect(page.get_by_text("Create a new item")).to_have_count(0)
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        assert violations(page, scheme=scheme) == []
    page.get_by_role("link", name="Show all organizations").click()
    expect(page.get_by_role("link", name="Meadows Limited")).to_be_visible()

    filters = page.get_by_role("button", name="Filters")
    filters.focus()
    page.keyboard.press("Enter")
    focused = page.locator("#changelist-filter :focus")
    expect(focused).to_have_count(1)
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        assert violations(page, scheme=scheme) == []
    assert not page.evaluate(SCROLLS)
    page.keyboard.press("Escape")
    expect(filters).to_be_focused()
    expect(page.get_by_role("button", name="Apply Filters")).to_be_hidden()


def test_a_menu_of_a_row_opens_by_keys(staff: Visitor) -> None:
    page, home = staff.page, users(1)
    page.goto(f"{staff.base}/admin/sqlgateway/organizationlimits/?q={home.pk}")
    page.get_by_role("button", name="Actions").last.focus()
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Set limits…").press("Enter")
    staff.sees(f"Set limits: {home.name}")


def test_every_link_of_a_list_leads_to_what_it_says(staff: Visitor) -> None:
    page = staff.page
    Organization.objects.bulk_create(Organization(name=f"o{n}") for n in range(210))
    page.goto(f"{staff.base}/admin/environments/organization/")
    links: list[Any] = page.locator("#main a[href]:not([href^='#'])").evaluate_all(
        "(all) => all.map((each) => [each.textContent.trim(), each.href])"
    )
    assert len(links) > 60
    for name, address in sorted({(text, href) for text, href in links}):
        answer = page.request.get(address)
        assert answer.status == 200, (name, address)
        # Where the list does not take a parameter, it shows its first page, with `e=1`.
        assert not re.search(r"[?&]e=1", answer.url), (name, address)
