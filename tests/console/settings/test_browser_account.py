"""In a browser: the account page with e-mail, password and sessions."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.models import ApiKey, Session, User
from environments.models import Organization
from tests import inbox
from tests.accounts.profile.support import mailed_code
from tests.cast import member, with_proven_address
from tests.console.browser import Visitor
from tests.console.journeys import (
    EMAIL,
    PASSWORD,
    add_account,
    age_proofs,
    enter_password,
    sign_out,
    sign_up,
)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]
Picture = Callable[[Page, str], None]
NEW = "dora@new.example"
NEW_PASSWORD = "eight loud mountains"


def link_in_mail(template: str, field: str = "link") -> str:
    """Return the path of the link in the last mail of a kind."""
    address: str = inbox.messages("mail", template)[-1]["context"][field]
    return address[address.index("/console/") :]


def test_the_address_is_verified_by_the_code_of_the_mail(
    visitor: Visitor, picture: Picture
) -> None:
    sign_up(visitor)
    visitor.go("/console/")
    visitor.sees("Verify your e-mail address")
    visitor.go("/console/members")
    visitor.sees("Your e-mail address is not verified yet.")
    visitor.page.get_by_role("link", name="Enter the code from the mail").click()
    visitor.is_at("/console/account")
    visitor.sees("not verified")
    picture(visitor.page, "account-unverified")
    visitor.fill("Code from the mail", "2222-2222")
    visitor.press("Verify address")
    visitor.sees("This is not the code that was mailed last.")
    visitor.fill("Code from the mail", mailed_code(EMAIL).lower())
    visitor.press("Verify address")
    visitor.sees_status("Your address is verified.")
    expect(visitor.page.get_by_label("Code from the mail")).to_be_hidden()
    visitor.go("/console/")
    expect(visitor.page.locator("#unverified")).to_be_hidden()
    assert User.objects.get().email_verified_at is not None


def test_a_member_leaves_and_sees_before_what_ends(visitor: Visitor, picture: Picture) -> None:
    sign_up(visitor)
    visitor.go("/console/account")
    visitor.press("Leave and delete the account")
    visitor.agrees("Leave and delete")
    expect(visitor.page.locator("#leaving [data-problem]")).to_have_text(
        "An organization needs an admin."
    )
    home = Organization.objects.get()
    with_proven_address(member(home, "alice@example.com"))
    age_proofs()
    created = ApiKey.objects.create(
        organization=home,
        environment=home.environments.get(slug="live"),
        creator=User.objects.get(email=EMAIL),
        name="nightly",
        digest="0" * 64,
        role="reader",
        scopes=[],
        created_at=timezone.now(),
        expires_at=timezone.now() + timedelta(days=1),
    )
    visitor.press("Leave and delete the account")
    visitor.sees(f"API key {created.name} (live)")
    picture(visitor.page, "account-leaving")
    visitor.agrees("Leave and delete")
    visitor.page.locator("#confirm-password").fill(PASSWORD)
    visitor.press("Confirm")
    visitor.is_at("/console/sign-in")
    assert not User.objects.filter(email=EMAIL).exists()
    assert "__Host-zonal-refresh" not in visitor.cookies()


def test_the_mailed_link_fills_in_the_code_even_across_a_sign_in(visitor: Visitor) -> None:
    add_account()
    visitor.page.goto(visitor.base + link_in_mail("email_verification"))
    visitor.is_at("/console/sign-in?next=%2Fconsole%2Faccount")
    visitor.fill("E-mail", EMAIL)
    visitor.fill("Password", PASSWORD)
    visitor.press("Sign in")
    visitor.is_at("/console/account")
    expect(visitor.page.get_by_label("Code from the mail")).to_have_value(mailed_code(EMAIL))
    # Opening the link has proven nothing by itself.
    assert User.objects.get().email_verified_at is None
    visitor.press("Verify address")
    visitor.sees_status("Your address is verified.")


def test_a_new_code_is_mailed_after_a_minute(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.go("/console/account")
    visitor.press("Mail a new code")
    visitor.sees("Too many codes were mailed. Try again in")


def test_a_changed_address_is_used_and_the_former_one_is_notified(
    visitor: Visitor, picture: Picture
) -> None:
    sign_up(visitor)
    visitor.go("/console/account")
    visitor.fill("New address", NEW)
    visitor.press("Change address")
    visitor.sees_status("A code is on its way to the new address.")
    visitor.sees(f"A code was mailed to {NEW}.")
    picture(visitor.page, "account-email-change")
    visitor.fill("Code from the mail", mailed_code(NEW))
    visitor.press("Verify address")
    visitor.sees_status("Your address is verified.")
    expect(visitor.page.locator("#email [data-slot=email]")).to_have_text(NEW)
    assert inbox.notices_to(EMAIL)[-1] == "email_changed"


def test_the_former_address_cancels_a_change(
    visitor: Visitor, visit: Callable[..., Visitor], picture: Picture
) -> None:
    sign_up(visitor)
    visitor.go("/console/account")
    visitor.fill("New address", NEW)
    visitor.press("Change address")
    visitor.sees_status("A code is on its way to the new address.")
    other = visit()
    other.go(link_in_mail("email_change_started", "cancel_link"))
    assert "#" not in other.page.url
    picture(other.page, "email-change-cancel")
    other.press("Keep the current address")
    other.sees("The address stays as it is")
    visitor.fill("Code from the mail", mailed_code(NEW))
    visitor.press("Verify address")
    visitor.sees("This code can no longer be used.")


def test_a_pending_change_of_address_is_withdrawn(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.go("/console/account")
    visitor.fill("New address", NEW)
    visitor.press("Change address")
    visitor.press("Keep the current address")
    visitor.sees_status("Your address stays as it is.")
    visitor.sees(f"Have a code mailed to {EMAIL}")


def test_the_password_is_changed_and_the_other_session_ends(
    visitor: Visitor, visit: Callable[..., Visitor], picture: Picture
) -> None:
    sign_up(visitor)
    other = visit()
    enter_password(other)
    other.is_at("/console/")
    visitor.go("/console/account")
    expect(visitor.page.locator("#session-list li")).to_have_count(2)
    picture(visitor.page, "account")
    visitor.fill("Present password", "not my password")
    visitor.fill("New password", NEW_PASSWORD)
    visitor.press("Change password")
    visitor.sees("This is not your present password, or it was tried too often.")
    visitor.fill("Present password", PASSWORD)
    visitor.fill("New password", "short")
    visitor.press("Change password")
    expect(visitor.page.locator("#new-password-error")).to_have_text("At least 8 characters.")
    visitor.fill("New password", NEW_PASSWORD)
    visitor.press("Change password")
    visitor.sees_status("Your password is changed. 1 other session ended.")
    expect(visitor.page.locator("#session-list li")).to_have_count(1)
    other.page.goto(f"{other.base}/console/security")
    other.is_at("/console/sign-in?next=%2Fconsole%2Fsecurity")
    sign_out(visitor)
    enter_password(visitor, NEW_PASSWORD)
    visitor.is_at("/console/")


def test_a_session_is_ended_and_so_are_all_others(
    visitor: Visitor, visit: Callable[..., Visitor]
) -> None:
    sign_up(visitor)
    for _ in range(3):
        other = visit()
        enter_password(other)
        other.is_at("/console/")
    visitor.go("/console/account")
    rows = visitor.page.locator("#session-list li")
    expect(rows).to_have_count(4)
    expect(rows.first).to_contain_text("Chrome on Linux")
    expect(rows.first).to_contain_text("This one")
    expect(rows.first.get_by_role("button")).to_be_hidden()
    rows.nth(1).get_by_role("button", name="End").click()
    visitor.sees_status("The session is ended.")
    expect(rows).to_have_count(3)
    visitor.press("Sign out everywhere else")
    visitor.agrees("Sign out")
    visitor.sees_status("2 sessions ended.")
    expect(rows).to_have_count(1)
    assert Session.objects.filter(ended_at=None).count() == 1


def test_a_user_without_a_password_sets_a_first_one(visitor: Visitor) -> None:
    sign_up(visitor)
    User.objects.update(password="!")
    visitor.go("/console/account")
    expect(visitor.page.get_by_label("Present password")).to_be_hidden()
    visitor.fill("New password", NEW_PASSWORD)
    visitor.press("Change password")
    visitor.sees_status("Your password is changed.")
    expect(visitor.page.get_by_label("Present password")).to_be_visible()


def test_a_change_asks_for_a_recent_proof(visitor: Visitor) -> None:
    sign_up(visitor)
    age_proofs()
    visitor.go("/console/account")
    visitor.fill("New address", NEW)
    visitor.press("Change address")
    visitor.sees("Confirm that it is you")
    visitor.page.locator("#confirm-password").fill(PASSWORD)
    visitor.press("Confirm")
    visitor.sees_status("A code is on its way to the new address.")
