"""In a browser: what is pressed before a page is ready is neither lost nor done twice."""

import pytest
from playwright.sync_api import expect

from tests.console.browser import Visitor, held
from tests.console.journeys import sign_up

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]


def test_a_press_before_the_page_s_script_came_happens_once_it_is_there(visitor: Visitor) -> None:
    sign_up(visitor)
    with held(visitor, r"/members/members\b.*\.js"):
        visitor.page.goto(f"{visitor.base}/console/members", wait_until="commit")
        search = visitor.page.get_by_role("button", name="Search")
        search.click()
        search.click()
        expect(visitor.page.locator("html[data-pressed]")).to_have_count(1)
        expect(visitor.page.locator("dialog[open]")).to_have_count(0)
    expect(visitor.page.locator("dialog[open]")).to_have_count(1)
