"""In a browser, with Chromium's virtual authenticator: add, sign in, confirm, remove."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from accounts.models import Session
from tests.console.browser import Visitor
from tests.console.journeys import (
    PASSWORD,
    age_proofs,
    enter_password,
    set_up_app,
    sign_out,
    sign_up,
)
from twofactor.models import Passkey

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]


def add_passkey(visitor: Visitor, name: str = "My key") -> None:
    """Add a passkey on the security page."""
    visitor.go("/console/security")
    visitor.press("Add a passkey")
    visitor.fill("Name", name)
    visitor.press("Add")
    visitor.sees_status("Your passkey is added.")


def test_a_passkey_is_added_signs_in_confirms_and_is_removed(
    visitor: Visitor, picture: Callable[[Page, str], None]
) -> None:
    visitor.without_autofill()
    visitor.virtual_authenticator()
    sign_up(visitor)
    add_passkey(visitor)
    assert [passkey.name for passkey in Passkey.objects.all()] == ["My key"]
    picture(visitor.page, "security-passkey")

    sign_out(visitor)
    visitor.press("Sign in with a passkey")
    visitor.is_at("/console/")
    visitor.sees("Password and second factor")

    visitor.go("/console/security")
    age_proofs()
    visitor.press("Remove: My key")
    visitor.agrees("Remove")
    visitor.sees("Use a passkey of this account")
    visitor.press("Use a passkey")
    visitor.sees_status("My key is removed.")
    visitor.sees("You have none.")
    assert not Passkey.objects.exists()

    sign_out(visitor)
    visitor.press("Sign in with a passkey")
    visitor.sees("passkey")
    expect(visitor.page.locator("#sign-in [data-problem]")).to_be_visible()


def test_a_passkey_is_offered_where_the_address_is_filled_in(visitor: Visitor) -> None:
    visitor.virtual_authenticator()
    sign_up(visitor)
    add_passkey(visitor)
    visitor.press("Sign out")
    # The virtual authenticator answers the browser's offer by itself.
    visitor.is_at("/console/")
    visitor.sees("Password and second factor")
    assert "pwd" not in Session.objects.get(ended_at=None).amr


def test_a_passkey_is_a_second_factor_after_the_password(visitor: Visitor) -> None:
    visitor.without_autofill()
    visitor.virtual_authenticator()
    sign_up(visitor)
    add_passkey(visitor)
    sign_out(visitor)
    enter_password(visitor)
    visitor.sees("Use a passkey of this account")
    visitor.press("Use a passkey")
    visitor.is_at("/console/")


def test_a_user_without_a_passkey_here_uses_another_method(visitor: Visitor) -> None:
    visitor.without_autofill()
    visitor.virtual_authenticator()
    sign_up(visitor)
    set_up_app(visitor)
    add_passkey(visitor)
    sign_out(visitor)
    # The authenticator is elsewhere now.
    session = visitor.context.new_cdp_session(visitor.page)
    session.send("WebAuthn.disable")
    visitor.virtual_authenticator()
    enter_password(visitor, PASSWORD)
    visitor.press("Passkey")
    visitor.press("Use a passkey")
    visitor.sees("No passkey was used.")
    visitor.press("Authenticator app")
    visitor.sees("Enter the code that your authenticator app shows.")


def test_in_development_the_printed_address_leads_to_the_name_where_passkeys_work(
    visitor: Visitor,
) -> None:
    sign_up(visitor)
    address = visitor.base.replace("localhost", "127.0.0.1")
    visitor.page.goto(f"{address}/console/security?from=banner#top")
    visitor.is_at("/console/security?from=banner#top")
    expect(visitor.page.get_by_role("button", name="Add a passkey")).to_be_visible()
