"""In a browser: a forgotten password, a lost second factor, an attacker's recovery cancelled."""

from collections.abc import Callable
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django import Settings

from accounts.models import Session, User
from environments.models import Organization
from recovery.models import Recovery
from tests import inbox
from tests.console.browser import Visitor
from tests.console.journeys import (
    EMAIL,
    PASSWORD,
    add_account,
    code,
    enter_password,
    next_code,
    sign_out,
    sign_up,
    with_app,
)
from tests.console.support import cookie
from tests.recovery.support import mailed_token, sent, work
from twofactor.models import Factor

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]
NEW_PASSWORD = "eight louder rivers"
Picture = Callable[[Page, str], None]


def add_proven_account() -> None:
    """Add an account, with the address proven."""
    add_account()
    User.objects.update(email_verified_at=timezone.now())


def start(visitor: Visitor, lost: str = "My password", how: str = "by e-mail") -> None:
    """Start a recovery and choose what is lost."""
    visitor.page.get_by_label(lost).check()
    visitor.fill("E-mail", EMAIL)
    visitor.page.get_by_label(how, exact=True).check()
    visitor.press("Continue")


def hand_in(visitor: Visitor) -> None:
    """Submit the mailed token."""
    visitor.sees("If there is such an account")
    work()
    visitor.fill("Code", mailed_token(to=EMAIL))
    visitor.press("Continue")


def test_a_forgotten_password_is_replaced(visitor: Visitor, picture: Picture) -> None:
    add_proven_account()
    visitor.go("/console/sign-in")
    visitor.page.get_by_role("link", name="Trouble signing in?").click()
    visitor.settle()
    picture(visitor.page, "recovery")
    start(visitor)
    visitor.sees("If there is such an account")
    picture(visitor.page, "recovery-code")
    visitor.fill("Code", "0" * 26)
    visitor.press("Continue")
    visitor.sees("The recovery token is wrong.")
    hand_in(visitor)
    visitor.sees("Choose a new password")
    assert cookie("reset") in visitor.cookies()
    visitor.fill("New password", "short")
    visitor.press("Continue")
    field = visitor.page.get_by_label("New password", exact=True)
    expect(field).to_have_attribute("aria-invalid", "true")
    visitor.fill("New password", NEW_PASSWORD)
    picture(visitor.page, "recovery-password")
    visitor.press("Continue")
    visitor.sees("Your password is changed")
    assert cookie("reset") not in visitor.cookies()
    assert not Session.objects.filter(ended_at=None).exists()
    enter_password(visitor, NEW_PASSWORD)
    visitor.is_at("/console/")


def test_the_mailed_link_fills_the_form_and_waits_for_submission(
    visitor: Visitor, visit: Callable[..., Visitor], picture: Picture
) -> None:
    add_proven_account()
    visitor.go("/console/recovery")
    start(visitor)
    visitor.sees("If there is such an account")
    work()
    link = urlsplit(sent("recovery_token")[-1]["context"]["link"])
    elsewhere = visit()
    elsewhere.go(f"{link.path}#{link.fragment}")
    elsewhere.is_at("/console/recovery")
    elsewhere.sees("The code of the mail is filled in.")
    picture(elsewhere.page, "recovery-link")
    assert Recovery.objects.get().verified_at is None
    elsewhere.press("Continue")
    elsewhere.sees("Choose a new password")
    assert elsewhere.page.evaluate("location.href").endswith("/console/recovery")


def test_a_recovery_asks_for_the_second_factor(visitor: Visitor, picture: Picture) -> None:
    add_proven_account()
    seed = with_app().seed
    visitor.go("/console/recovery")
    start(visitor)
    hand_in(visitor)
    visitor.fill("New password", NEW_PASSWORD)
    visitor.press("Continue")
    visitor.sees("Enter the code that your authenticator app shows.")
    picture(visitor.page, "recovery-proof")
    visitor.fill("Code", "000000")
    visitor.press("Verify")
    visitor.sees("The code is wrong.")
    visitor.fill("Code", next_code(seed))
    visitor.press("Verify")
    visitor.sees("Your password is changed")


def test_a_reload_goes_on_with_a_recovery_and_sends_no_second_code(
    visitor: Visitor, settings: Settings
) -> None:
    settings.SMS_BACKEND = "outbox.messages.sms.file.send"
    sign_up(visitor)
    User.objects.update(email_verified_at=timezone.now())
    visitor.go("/console/security")
    visitor.press("Set up: Text message")
    visitor.fill("Phone number", "+49 151 12345678")
    visitor.press("Send a code")
    visitor.sees("It went to •••• 78.")
    visitor.fill("Code", inbox.sms_code())
    visitor.press("Turn on")
    visitor.sees_status("Text message is on.")
    sign_out(visitor)

    visitor.go("/console/recovery")
    start(visitor)
    visitor.sees("If there is such an account")
    visitor.page.reload()
    hand_in(visitor)
    assert len(inbox.messages("mail", "recovery_token")) == 1
    visitor.sees("Choose a new password")
    visitor.page.reload()
    visitor.fill("New password", NEW_PASSWORD)
    visitor.press("Continue")
    visitor.sees("Enter the code we have sent to •••• 78.")
    texts = len(inbox.messages("sms"))
    # The password is kept nowhere, so it is typed again; the code that was sent is good.
    visitor.page.reload()
    visitor.fill("New password", NEW_PASSWORD)
    visitor.press("Continue")
    visitor.sees("Enter the code we have sent to •••• 78.")
    assert len(inbox.messages("sms")) == texts
    assert NEW_PASSWORD not in visitor.page.evaluate(
        "JSON.stringify([{...localStorage}, {...sessionStorage}])"
    )
    visitor.fill("Code", inbox.sms_code())
    visitor.press("Verify")
    visitor.sees("Your password is changed")


def test_security_questions_lead_to_the_mailed_code(visitor: Visitor, picture: Picture) -> None:
    sign_up(visitor)
    User.objects.update(email_verified_at=timezone.now())
    Organization.objects.update(recovery_questions_enabled=True)
    visitor.go("/console/security")
    visitor.press("Security questions")
    for number in range(3):
        visitor.page.get_by_label("Answer").nth(number).fill(f"lake number {number}")
    visitor.press("Save the answers")
    visitor.sees_status("Your answers are kept.")
    sign_out(visitor)
    visitor.go("/console/recovery")
    start(visitor, how="by e-mail, after security questions")
    fields = visitor.page.locator("#answers-list input")
    expect(fields).to_have_count(3)
    picture(visitor.page, "recovery-questions")
    visitor.page.reload()
    expect(fields).to_have_count(3)
    for number in range(3):
        fields.nth(number).fill(f"Lake Number {number}")
    visitor.press("Continue")
    hand_in(visitor)
    visitor.sees("Choose a new password")


def test_a_lost_second_factor_is_replaced_after_the_delay(
    visitor: Visitor, picture: Picture
) -> None:
    add_proven_account()
    with_app()
    visitor.go("/console/recovery")
    start(visitor, lost="My second factor")
    hand_in(visitor)
    visitor.fill("Password", PASSWORD)
    picture(visitor.page, "recovery-first-proof")
    visitor.press("Start the delay")
    visitor.sees("Come back later")
    expect(visitor.page.get_by_role("button", name="Remove them now")).to_be_hidden()
    picture(visitor.page, "recovery-delayed")

    Recovery.objects.update(effective_at=timezone.now() - timedelta(seconds=1))
    remembered = "{from: 1, until: Math.floor(Date.now() / 1000) + 9999}"
    visitor.page.evaluate(
        f"localStorage.setItem('zonal-recovery-delay', JSON.stringify({remembered}))"
    )
    visitor.go("/console/recovery")
    visitor.press("Remove them now")
    visitor.sees("Your old ones are removed.")
    assert not Factor.objects.exists()
    visitor.page.reload()
    visitor.sees("Your old ones are removed.")
    visitor.page.get_by_role("button", name="Authenticator app", exact=True).click()
    key = visitor.page.locator("#totp-key")
    expect(key).not_to_be_empty()
    seed = (key.text_content() or "").replace(" ", "")
    visitor.page.reload()
    visitor.fill("Code", code(seed))
    visitor.press("Turn on")
    visitor.press("I have saved them")
    visitor.is_at("/console/")
    visitor.sees("Password and second factor")


def test_an_attackers_recovery_is_cancelled(
    visitor: Visitor, visit: Callable[..., Visitor], picture: Picture
) -> None:
    add_proven_account()
    with_app()
    stranger = visit()
    stranger.go("/console/recovery")
    start(stranger, lost="My second factor")
    hand_in(stranger)
    stranger.fill("Password", PASSWORD)
    stranger.press("Start the delay")
    stranger.sees("Come back later")

    visitor.go("/console/recovery/cancel")
    picture(visitor.page, "recovery-cancel")
    visitor.fill("Code from the message", "nonsense")
    visitor.press("Cancel the recovery")
    field = visitor.page.get_by_label("Code from the message")
    expect(field).to_have_attribute("aria-invalid", "true")
    # The mail's link, opened in the tab that shows the page already.
    link = urlsplit(sent("recovery_started")[-1]["context"]["cancel_link"])
    visitor.page.goto(f"{visitor.base}{link.path}#{link.fragment}")
    expect(visitor.page.get_by_label("Code from the message")).to_have_value(
        sent("recovery_started")[-1]["context"]["cancel_token"]
    )
    assert Recovery.objects.get().end_reason == ""
    visitor.press("Cancel the recovery")
    visitor.sees("The recovery is cancelled")
    assert Recovery.objects.get().end_reason == "cancelled"
