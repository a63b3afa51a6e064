"""In a browser: sign-up by a mailed link, and an account that lost its unverified address."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from accounts.models import SignupLink, User
from tests import inbox
from tests.accounts.profile.support import mailed_code
from tests.console.browser import Visitor
from tests.console.journeys import (
    EMAIL,
    PASSWORD,
    age_proofs,
    enter_password,
    next_code,
    sign_up,
    with_app,
)
from tests.console.layout import NARROW, hold
from tests.console.support import cookie
from tests.recovery.support import mailed_token, work

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]
OTHER = "dora@other.example"
OWNER_PASSWORD = "nine quieter lakes"


def open_link(visitor: Visitor) -> None:
    """Open the link of the last sign-up mail."""
    address: str = inbox.messages("mail", "signup_link")[-1]["context"]["link"]
    visitor.go(address[address.index("/console/") :])


def request_link(visitor: Visitor) -> None:
    """Request a sign-up link for an address that has an account."""
    visitor.go("/console/sign-up")
    visitor.fill("E-mail", EMAIL)
    visitor.fill("Password", OWNER_PASSWORD)
    visitor.press("Create")
    visitor.sees("There is an account with this e-mail.")
    visitor.press("Mail a sign-up link")
    visitor.sees("Its link works once")


def complete_link(visitor: Visitor) -> None:
    """Choose a password on the page of the mailed link."""
    visitor.fill("New password", OWNER_PASSWORD)
    visitor.press("Open the account")
    visitor.sees("Your organization was created")
    visitor.sees("so it has lost the address to yours")


def with_factor(visitor: Visitor) -> str:
    """Sign up, with an authenticator app; return its seed."""
    sign_up(visitor)
    return with_app().seed


def test_the_mailed_link_completes_the_sign_up(
    visitor: Visitor, visit: Callable[..., Visitor]
) -> None:
    sign_up(visitor)
    owner = visit(**NARROW)
    request_link(owner)
    hold(owner, "sign-up link mailed")
    open_link(owner)
    # The token is removed from the URL immediately, and opening the link changes nothing.
    owner.is_at("/console/sign-up")
    assert SignupLink.objects.exists()
    owner.sees("Choose a password")
    hold(owner, "sign-up by link")
    owner.fill("New password", "short")
    owner.press("Open the account")
    expect(owner.field("New password")).to_have_attribute("aria-invalid", "true")
    complete_link(owner)
    kept = owner.cookies()
    assert kept[cookie("access")]["httpOnly"]
    reached = owner.page.evaluate(
        "JSON.stringify([document.cookie, {...localStorage}, {...sessionStorage}])"
    )
    assert "eyJ" not in reached
    owner.page.get_by_role("link", name="Open the console").click()
    owner.is_at("/console/")
    expect(owner.page.locator("#unverified")).to_be_hidden()


def test_a_used_link_leads_to_a_new_one(visitor: Visitor, visit: Callable[..., Visitor]) -> None:
    sign_up(visitor)
    owner = visit()
    request_link(owner)
    open_link(owner)
    SignupLink.objects.all().delete()
    owner.fill("New password", OWNER_PASSWORD)
    owner.press("Open the account")
    owner.sees("This link can no longer be used.")
    owner.fill("E-mail", EMAIL)
    owner.press("Mail a sign-up link")
    owner.sees("Its link works once")
    open_link(owner)
    complete_link(owner)


def test_an_account_that_lost_its_address_gives_another_one(
    visitor: Visitor, visit: Callable[..., Visitor]
) -> None:
    seed = with_factor(visitor)
    owner = visit()
    request_link(owner)
    open_link(owner)
    complete_link(owner)
    for path in ("/console/", "/console/security", "/console/sign-in"):
        visitor.page.goto(visitor.base + path)
        visitor.is_at("/console/account")
    visitor.sees("Enter another address and verify it.")
    expect(visitor.page.locator("#email [data-slot=email]")).to_have_text("No address")
    for part in ("#password", "#sessions", "#verification"):
        expect(visitor.page.locator(part)).to_be_hidden()
    hold(visitor, "account without an address")
    age_proofs()
    visitor.fill("New address", OTHER)
    visitor.press("Change address")
    visitor.sees("Confirm that it is you")
    visitor.fill("Code", next_code(seed))
    visitor.press("Verify")
    visitor.sees(f"A code was mailed to {OTHER}.")
    visitor.fill("Code from the mail", mailed_code(OTHER))
    visitor.press("Verify address")
    expect(visitor.page.locator("#email-required")).to_be_hidden()
    expect(visitor.page.locator("#email [data-slot=email]")).to_have_text(OTHER)
    expect(visitor.page.locator("#password")).to_be_visible()
    assert set(User.objects.values_list("email", flat=True)) == {EMAIL, OTHER}


def test_without_a_second_factor_the_password_proves_who_gives_another_address(
    visitor: Visitor, visit: Callable[..., Visitor]
) -> None:
    sign_up(visitor)
    owner = visit()
    request_link(owner)
    open_link(owner)
    complete_link(owner)
    visitor.page.goto(visitor.base + "/console/")
    visitor.is_at("/console/account")
    age_proofs()
    visitor.fill("New address", OTHER)
    visitor.press("Change address")
    visitor.sees("Confirm that it is you")
    visitor.page.locator("#confirm-password").fill(PASSWORD)
    visitor.page.locator("#confirm-form button[type=submit]").click()
    visitor.sees(f"A code was mailed to {OTHER}.")
    visitor.fill("Code from the mail", mailed_code(OTHER))
    visitor.press("Verify address")
    expect(visitor.page.locator("#email [data-slot=email]")).to_have_text(OTHER)


def test_recovery_says_that_it_opens_a_new_account(
    visitor: Visitor, visit: Callable[..., Visitor]
) -> None:
    sign_up(visitor)
    owner = visit()
    owner.go("/console/recovery")
    owner.fill("E-mail", EMAIL)
    owner.press("Continue")
    owner.sees("If there is such an account")
    work()
    owner.fill("Code", mailed_token(to=EMAIL))
    owner.press("Continue")
    owner.sees("You get a new account with your address in a new organization")
    owner.fill("New password", OWNER_PASSWORD)
    owner.press("Continue")
    owner.sees("You have a new account")
    enter_password(owner, OWNER_PASSWORD)
    owner.is_at("/console/")
    assert User.objects.count() == 2


def test_an_open_page_leads_to_the_account_page_once_the_address_is_lost(
    visitor: Visitor, visit: Callable[..., Visitor]
) -> None:
    with_factor(visitor)
    visitor.go("/console/sql")
    owner = visit()
    request_link(owner)
    open_link(owner)
    complete_link(owner)
    visitor.press("Run")
    visitor.is_at("/console/account")


def test_recovery_opens_a_new_account_for_the_owner_of_the_mailbox(
    visitor: Visitor, visit: Callable[..., Visitor]
) -> None:
    with_factor(visitor)
    owner = visit()
    owner.go("/console/recovery")
    owner.fill("E-mail", EMAIL)
    owner.press("Continue")
    owner.sees("If there is such an account")
    work()
    owner.fill("Code", mailed_token(to=EMAIL))
    owner.press("Continue")
    owner.fill("New password", OWNER_PASSWORD)
    owner.press("Continue")
    owner.press("Open a new account with this address")
    owner.sees("You have a new account")
    enter_password(owner, OWNER_PASSWORD)
    owner.is_at("/console/")
    owner.sees("First factor only")
    assert User.objects.filter(email=EMAIL).count() == 1
    assert User.objects.count() == 2
