"""In a browser: after the end of a session, Back shows nothing of it.

Chromium's headless shell keeps no page to show it again: the tests send the events of a browser
that does. Without them Back loads the page from the HTTP cache or anew.
"""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from accounts.models import Session
from tests.console.browser import Visitor
from tests.console.journeys import begin_app, sign_out, sign_up

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]

# Also of the admin's test.
PAGE_IS_KEPT = "dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))"
PAGE_IS_SHOWN_AGAIN = "dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))"
SIGN_IN = "/console/sign-in?next=%2Fconsole%2F"


def create_key(visitor: Visitor) -> str:
    """Create an API key; return its text, which the page shows once."""
    visitor.go("/console/api-keys")
    visitor.press("New API key")
    visitor.fill("Name", "nightly")
    visitor.press("Create")
    visitor.sees("Your new key is shown only now")
    return str(visitor.page.locator("#api-key-made code").text_content())


def set_up_code(visitor: Visitor) -> str:
    """Begin to set up an app; return the secret that the page shows."""
    visitor.go("/console/security")
    begin_app(visitor)
    return str(visitor.page.locator("#totp-key").text_content())


@pytest.mark.parametrize(
    ("show_secret", "page"), [(create_key, "api-keys"), (set_up_code, "security")]
)
def test_a_kept_page_is_hidden_and_shows_no_secret_when_it_is_shown_again(
    visitor: Visitor, show_secret: Callable[[Visitor], str], page: str
) -> None:
    sign_up(visitor)
    secret = show_secret(visitor)
    expect(visitor.page.get_by_text(secret).first).to_be_visible()
    visitor.page.evaluate(PAGE_IS_KEPT)
    expect(visitor.page.get_by_text(secret).locator("visible=true")).to_have_count(0)
    # As an admin does elsewhere, so that no cookie of this browser changes.
    Session.objects.all().delete()
    visitor.page.evaluate(PAGE_IS_SHOWN_AGAIN)
    visitor.is_at(SIGN_IN + page)
    assert secret not in visitor.page.content()


def test_back_after_the_sign_out_leads_to_the_sign_in(visitor: Visitor) -> None:
    sign_up(visitor)
    secret = create_key(visitor)
    sign_out(visitor)
    visitor.page.go_back()
    visitor.is_at(f"{SIGN_IN}api-keys")
    assert secret not in visitor.page.content()
