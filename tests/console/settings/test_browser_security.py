"""In a browser: the security page, and the dialog that asks for a recent proof."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from pytest_django import Settings

from environments.models import Organization
from tests import inbox
from tests.console.browser import Visitor
from tests.console.journeys import (
    PASSWORD,
    add_account,
    age_proofs,
    begin_app,
    code,
    enter_password,
    keep_backup_codes,
    next_code,
    set_up_app,
    sign_out,
    sign_up,
    with_app,
)
from twofactor.models import Factor

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]
Picture = Callable[[Page, str], None]


@pytest.fixture
def sms(settings: Settings) -> None:
    """Queue text messages without sending them."""
    settings.SMS_BACKEND = "outbox.messages.sms.file.send"


def test_the_picture_the_key_and_the_codes_are_shown_once(
    visit: Callable[..., Visitor], picture: Picture
) -> None:
    visitor = visit(permissions=["clipboard-read", "clipboard-write"])
    sign_up(visitor)
    visitor.go("/console/security")
    seed = begin_app(visitor)
    qr = visitor.page.get_by_alt_text("QR code for your authenticator app")
    assert qr.evaluate("(image) => image.naturalWidth") > 100
    picture(visitor.page, "security-app")
    visitor.press("Copy the key")
    visitor.sees_status("The key is in the clipboard.")
    assert visitor.page.evaluate("navigator.clipboard.readText()") == seed
    visitor.fill("Code", code(seed))
    visitor.press("Turn on")
    visitor.sees("Keep your backup codes")
    picture(visitor.page, "backup-codes")
    codes = visitor.page.locator("#backup-codes-list li").all_text_contents()
    visitor.press("Copy")
    visitor.sees_status("The codes are in the clipboard.")
    assert visitor.page.evaluate("navigator.clipboard.readText()").split("\n") == codes
    with visitor.page.expect_download() as download:
        visitor.press("Download")
    kept = download.value.path().read_text()
    assert download.value.suggested_filename == "backup-codes.txt"
    assert all(each in kept for each in codes)
    visitor.press("I have saved them")
    visitor.go("/console/security")
    assert codes[0] not in visitor.page.content()
    assert seed not in visitor.page.content().replace(" ", "")


def test_an_old_proof_is_renewed_and_the_action_continues(
    visitor: Visitor, picture: Picture
) -> None:
    sign_up(visitor)
    seed, _ = set_up_app(visitor)
    age_proofs()
    visitor.press("Generate new codes")
    visitor.agrees("Generate new codes")
    visitor.sees("Confirm that it is you")
    picture(visitor.page, "step-up")
    visitor.fill("Code", next_code(seed))
    visitor.press("Verify")
    assert len(keep_backup_codes(visitor)) == 10
    visitor.sees_status("Your new backup codes are active.")


def test_without_a_second_factor_the_password_is_asked_for(visitor: Visitor) -> None:
    sign_up(visitor)
    age_proofs()
    visitor.go("/console/security")
    visitor.press("Set up: Authenticator app")
    field = visitor.page.get_by_role("dialog").get_by_label("Password", exact=True)
    expect(field).to_be_focused()
    field.fill("not the password")
    visitor.press("Confirm")
    visitor.sees("The e-mail or the password is wrong.")
    field.fill(PASSWORD)
    visitor.press("Confirm")
    expect(visitor.page.locator("#totp-key")).to_be_visible()


def test_a_cancelled_confirmation_changes_nothing(visitor: Visitor) -> None:
    sign_up(visitor)
    set_up_app(visitor)
    age_proofs()
    visitor.press("Remove: Authenticator app")
    visitor.agrees("Remove")
    dialog = visitor.page.get_by_role("dialog", name="Confirm that it is you")
    expect(dialog).to_be_visible()
    visitor.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert Factor.objects.filter(method="totp").exists()
    expect(visitor.page.locator("#factors [data-problem]")).to_be_hidden()
    visitor.press("Remove: Authenticator app")
    visitor.agrees("Cancel")
    assert Factor.objects.filter(method="totp").exists()


def test_text_messages_and_mails_are_set_up_preferred_and_removed(
    visitor: Visitor, sms: None, picture: Picture
) -> None:
    sign_up(visitor)
    visitor.go("/console/security")
    visitor.press("Set up: Text message")
    visitor.fill("Phone number", "0151 23456789")
    visitor.press("Send a code")
    visitor.sees("Start with + and the country code")
    visitor.fill("Phone number", "+49 151 12345678")
    visitor.press("Send a code")
    visitor.sees("It went to •••• 78.")
    visitor.fill("Code", inbox.sms_code())
    visitor.press("Turn on")
    visitor.sees_status("Text message is on.")

    visitor.press("Set up: E-mail")
    visitor.sees("It went to d")
    visitor.fill("Code", inbox.email_code())
    visitor.press("Turn on")
    visitor.sees_status("E-mail is on.")
    picture(visitor.page, "security-methods")
    visitor.press("Make default: E-mail")
    visitor.sees_status("E-mail is what you are asked for first.")
    expect(visitor.page.get_by_role("button", name="Make default: E-mail")).to_be_hidden()

    sign_out(visitor)
    enter_password(visitor)
    visitor.sees("Enter the code we have sent")
    visitor.press("Send a new code")
    visitor.sees_status("The code is on its way already.")
    visitor.press("Text message")
    visitor.sees("Enter the code we have sent to •••• 78.")
    visitor.fill("Code", inbox.sms_code())
    visitor.press("Verify")
    visitor.is_at("/console/")

    visitor.go("/console/security")
    visitor.press("Remove: Text message")
    visitor.agrees("Remove")
    visitor.sees_status("Text message is removed.")
    assert [factor.method for factor in Factor.objects.all()] == ["email"]


def test_a_reload_goes_on_with_a_set_up_and_sends_no_second_code(
    visitor: Visitor, sms: None
) -> None:
    sign_up(visitor)
    visitor.go("/console/security")
    visitor.press("Set up: Text message")
    visitor.fill("Phone number", "+49 151 12345678")
    visitor.press("Send a code")
    visitor.sees("It went to •••• 78.")
    visitor.page.reload()
    visitor.sees("It went to •••• 78.")
    assert len(inbox.messages("sms")) == 1
    visitor.fill("Code", inbox.sms_code())
    visitor.press("Turn on")
    visitor.sees_status("Text message is on.")

    seed = begin_app(visitor)
    visitor.page.reload()
    visitor.sees("The key was shown before this page was loaded again.")
    assert seed not in visitor.page.content().replace(" ", "")
    assert seed not in visitor.page.evaluate("JSON.stringify({...sessionStorage})")
    visitor.fill("Code", code(seed))
    visitor.press("Turn on")
    keep_backup_codes(visitor)

    visitor.press("Set up: E-mail")
    visitor.sees("It went to d")
    visitor.page.locator("#enrol-code").get_by_role("button", name="Cancel").click()
    visitor.page.reload()
    expect(visitor.page.get_by_role("button", name="Set up: E-mail")).to_be_visible()


def test_an_unavailable_channel_is_reported(visitor: Visitor, settings: Settings) -> None:
    settings.SMS_BACKEND = ""
    sign_up(visitor)
    visitor.go("/console/security")
    visitor.press("Set up: Text message")
    visitor.fill("Phone number", "+49 151 12345678")
    visitor.press("Send a code")
    visitor.sees("No SMS provider is configured here.")
    visitor.page.locator("#enrol-sms").get_by_role("button", name="Cancel").click()
    visitor.sees("Trusted devices")


def test_a_trusted_device_is_forgotten(visitor: Visitor) -> None:
    add_account()
    seed = with_app().seed
    enter_password(visitor)
    visitor.fill("Code", next_code(seed))
    visitor.page.get_by_label("Trust this device for 30 days").check()
    visitor.press("Verify")
    visitor.is_at("/console/")
    visitor.go("/console/security")
    visitor.press("Remove: Chrome on Linux")
    visitor.sees_status("Chrome on Linux is no longer trusted.")
    visitor.sees("There are none.")
    sign_out(visitor)
    enter_password(visitor)
    visitor.sees("Enter the code that your authenticator app shows.")


def test_security_questions_are_set_where_they_are_enabled(
    visitor: Visitor, picture: Picture
) -> None:
    sign_up(visitor)
    visitor.go("/console/security")
    visitor.press("Security questions")
    visitor.sees("Your organization does not use security questions.")
    Organization.objects.update(recovery_questions_enabled=True)
    visitor.go("/console/security")
    visitor.press("Security questions")
    answers = visitor.page.get_by_label("Answer")
    expect(answers).to_have_count(3)
    for number, text in enumerate(("one lake", "two rivers", "three seas")):
        answers.nth(number).fill(text)
    picture(visitor.page, "security-questions")
    visitor.press("Save the answers")
    visitor.sees_status("Your answers are kept.")
    visitor.sees("You have answered three")
    assert "one lake" not in visitor.page.content()
    visitor.press("Remove all answers")
    visitor.agrees("Remove")
    visitor.sees_status("Your answers are removed.")
