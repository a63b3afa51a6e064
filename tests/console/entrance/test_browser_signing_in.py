"""In a browser: sign up, authenticator app, backup codes, sign out and in, trusted device."""

from collections.abc import Callable
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, Route, expect

from accounts.models import User
from environments.models import Organization
from tests import inbox
from tests.console.browser import Visitor
from tests.console.journeys import (
    EMAIL,
    PASSWORD,
    add_account,
    begin_app,
    code,
    enter_password,
    next_code,
    set_up_app,
    sign_out,
    sign_up,
    sign_up_on_the_page,
    with_app,
)
from tests.console.support import cookie
from twofactor.models import Challenge, TrustedDevice

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]
QUESTION = "**/v1/auth/2fa/challenge*"
Picture = Callable[[Page, str], None]


def test_over_plain_http_the_page_says_what_it_needs_before_a_password_is_typed(
    visitor: Visitor, picture: Picture
) -> None:
    def serve(route: Route) -> None:
        address = route.request.url.replace("http://zonal.test", visitor.base)
        route.fulfill(response=route.fetch(url=address))

    visitor.context.route("http://zonal.test/**", serve)
    for page in ("sign-in", "sign-up", "recovery", ""):
        visitor.page.goto(f"http://zonal.test/console/{page}")
        visitor.sees("The console needs https, or localhost on the machine itself")
        expect(visitor.page.locator("input").locator("visible=true")).to_have_count(0)
    picture(visitor.page, "plain-http")
    # The browser says that it ignores Cross-Origin-Opener-Policy there.
    visitor.faults.clear()


def test_a_reload_goes_on_at_the_second_step(visitor: Visitor, picture: Picture) -> None:
    add_account()
    seed = with_app().seed
    enter_password(visitor)
    visitor.sees("Enter the code that your authenticator app shows.")
    opened = Challenge.objects.count()
    visitor.page.reload()
    visitor.sees("Enter the code that your authenticator app shows.")
    picture(visitor.page, "second-factor-reloaded")
    assert Challenge.objects.count() == opened
    visitor.fill("Code", next_code(seed))
    visitor.press("Verify")
    visitor.is_at("/console/")
    # The step is over: the page begins anew.
    sign_out(visitor)
    visitor.go("/console/sign-in")
    expect(visitor.page.get_by_role("button", name="Sign in", exact=True)).to_be_visible()


def test_a_reload_asks_anew_when_the_question_is_over(visitor: Visitor) -> None:
    add_account()
    seed = with_app().seed
    enter_password(visitor)
    visitor.sees("Enter the code that your authenticator app shows.")
    Challenge.objects.all().delete()
    visitor.fill("Code", next_code(seed))
    visitor.press("Verify")
    visitor.sees("This challenge can no longer be answered.")
    visitor.page.reload()
    visitor.sees("Enter the code that your authenticator app shows.")
    visitor.fill("Code", next_code(seed))
    visitor.press("Verify")
    visitor.is_at("/console/")


def test_a_reload_goes_on_with_the_factor_that_a_sign_in_requires(visitor: Visitor) -> None:
    add_account()
    Organization.objects.update(mfa_required=True, mfa_grace_period_days=0)
    enter_password(visitor)
    visitor.page.get_by_role("button", name="E-mail", exact=True).click()
    visitor.sees("It went to d")
    visitor.page.reload()
    visitor.sees("It went to d")
    assert len(inbox.messages("mail", "email_code")) == 1
    visitor.fill("Code", inbox.email_code())
    visitor.press("Turn on")
    visitor.is_at("/console/")


def test_at_the_second_step_somebody_else_can_sign_in(visitor: Visitor) -> None:
    add_account()
    with_app()
    asked: list[Route] = []

    def hold(route: Route) -> None:
        asked.append(route)

    # While the question is on its way.
    visitor.page.route(QUESTION, hold)
    with visitor.page.expect_request(QUESTION):
        enter_password(visitor)
    visitor.press("Sign in as somebody else")
    expect(visitor.field("Password")).to_be_visible()
    with visitor.page.expect_response(QUESTION):
        asked[0].continue_()
    visitor.page.reload()
    visitor.settle()
    expect(visitor.field("Password")).to_be_visible()


def test_from_signing_up_to_a_trusted_device(visitor: Visitor, picture: Picture) -> None:
    visitor.go("/console/sign-up")
    picture(visitor.page, "sign-up")
    sign_up_on_the_page(visitor)
    visitor.sees("A password alone can be stolen.")
    picture(visitor.page, "home")

    seed, codes = set_up_app(visitor)
    assert len(set(codes)) == 10
    assert codes[0] not in visitor.page.content()
    visitor.sees("You have 10 unused codes.")
    picture(visitor.page, "security")

    sign_out(visitor)
    enter_password(visitor)
    visitor.sees("Enter the code that your authenticator app shows.")
    picture(visitor.page, "second-factor")
    visitor.fill("Code", "000000")
    visitor.press("Verify")
    visitor.sees("The code is wrong.")
    visitor.fill("Code", next_code(seed))
    visitor.page.get_by_label("Trust this device for 30 days").check()
    visitor.press("Verify")
    visitor.is_at("/console/")
    visitor.sees("Password and second factor")
    assert [device.name for device in TrustedDevice.objects.all()] == ["Chrome on Linux"]

    sign_out(visitor)
    enter_password(visitor)
    visitor.is_at("/console/")


def test_no_script_can_reach_a_token(visitor: Visitor) -> None:
    sign_up_on_the_page(visitor)
    kept = visitor.cookies()
    for kind in ("access", "refresh"):
        assert kept[cookie(kind)]["httpOnly"]
        assert kept[cookie(kind)]["secure"]
        assert kept[cookie(kind)]["sameSite"] == "Strict"
    for name in ("/console/", "/console/security", "/console/policy"):
        visitor.go(name)
        reached = visitor.page.evaluate(
            "JSON.stringify([document.cookie, {...localStorage}, {...sessionStorage}])"
        )
        assert "eyJ" not in reached
        assert "zonal-access" not in reached
    sign_out(visitor)
    assert visitor.cookies() == {}


def test_a_backup_code_replaces_the_authenticator_app(visitor: Visitor) -> None:
    add_account()
    codes = with_app().backup_codes
    enter_password(visitor)
    visitor.press("Backup code")
    visitor.sees("Enter one of the backup codes")
    visitor.fill("Backup code", codes[0])
    visitor.press("Verify")
    visitor.is_at("/console/")
    visitor.go("/console/security")
    visitor.sees("You have 9 unused codes.")


def test_an_error_is_shown_next_to_its_field(visitor: Visitor, picture: Picture) -> None:
    visitor.go("/console/sign-up")
    visitor.press("Create")
    email = visitor.page.get_by_label("E-mail")
    expect(email).to_be_focused()
    expect(email).to_have_attribute("aria-invalid", "true")
    expect(email).to_have_accessible_description("This is needed.")
    visitor.fill("E-mail", "nobody")
    visitor.fill("Password", "short")
    visitor.press("Create")
    expect(email).to_have_accessible_description("Enter a valid email address.")
    visitor.fill("E-mail", EMAIL)
    visitor.press("Create")
    password = visitor.page.get_by_label("Password", exact=True)
    expect(password).to_be_focused()
    expect(password).to_have_attribute("aria-invalid", "true")
    expect(email).not_to_have_attribute("aria-invalid", "true")
    picture(visitor.page, "sign-up-refused")


def test_a_wrong_password_is_reported_and_the_form_keeps_its_values(
    visitor: Visitor, picture: Picture
) -> None:
    visitor.go("/console/sign-in")
    picture(visitor.page, "sign-in")
    enter_password(visitor, "not the password")
    expect(visitor.page.get_by_role("alert")).to_have_text("The e-mail or the password is wrong.")
    expect(visitor.page.get_by_label("E-mail")).to_have_value(EMAIL)
    expect(visitor.page.get_by_label("Password", exact=True)).to_be_focused()


def test_a_password_can_be_shown(visitor: Visitor) -> None:
    visitor.go("/console/sign-in")
    field = visitor.page.get_by_label("Password", exact=True)
    visitor.press("Show password")
    expect(field).to_have_attribute("type", "text")
    visitor.press("Show password")
    expect(field).to_have_attribute("type", "password")


def test_a_required_second_factor_is_set_up_during_sign_in(
    visitor: Visitor, picture: Picture
) -> None:
    add_account()
    Organization.objects.update(mfa_required=True, mfa_grace_period_days=0)
    enter_password(visitor)
    visitor.sees("Your organization requires one before you go on.")
    picture(visitor.page, "enrolment")
    visitor.page.get_by_role("button", name="Authenticator app", exact=True).click()
    key = visitor.page.locator("#totp-key")
    expect(key).not_to_be_empty()
    picture(visitor.page, "enrolment-app")
    visitor.fill("Code", code((key.text_content() or "").replace(" ", "")))
    visitor.press("Turn on")
    visitor.sees("Keep your backup codes")
    visitor.press("I have saved them")
    visitor.is_at("/console/")
    visitor.sees("Password and second factor")


def test_a_session_restricted_by_a_new_policy_is_sent_to_set_up(visitor: Visitor) -> None:
    sign_up(visitor)
    Organization.objects.update(mfa_required=True, mfa_grace_period_days=0)
    visitor.page.goto(f"{visitor.base}/console/")
    visitor.is_at("/console/security")
    visitor.sees("Your organization requires a second factor. Set one up.")
    seed = begin_app(visitor)
    visitor.fill("Code", code(seed))
    visitor.press("Turn on")
    visitor.sees("Keep your backup codes")
    visitor.press("I have saved them")
    visitor.sees("Lakes & Sons")
    visitor.go("/console/")
    visitor.sees("Password and second factor")


def test_a_session_whose_method_is_no_longer_allowed_sets_up_another(visitor: Visitor) -> None:
    sign_up(visitor)
    set_up_app(visitor)
    Organization.objects.update(
        mfa_required=True, mfa_grace_period_days=0, mfa_allowed_methods=["email"]
    )
    visitor.page.goto(f"{visitor.base}/console/")
    visitor.is_at("/console/security")
    visitor.sees("Your organization does not allow the methods you have. Set up another one.")
    expect(visitor.page.get_by_role("button", name="Set up: E-mail")).to_be_visible()


def test_a_session_from_before_the_second_factor_must_sign_in_again(
    visitor: Visitor,
) -> None:
    sign_up(visitor)
    with_app()
    Organization.objects.update(mfa_required=True, mfa_grace_period_days=0)
    visitor.page.goto(f"{visitor.base}/console/")
    visitor.is_at("/console/security")
    visitor.sees("and you have one: sign out, and in again with it.")


def test_an_anonymous_visitor_returns_to_the_requested_page_after_sign_in(visitor: Visitor) -> None:
    add_account()
    visitor.page.goto(f"{visitor.base}/console/policy")
    visitor.is_at("/console/sign-in?next=%2Fconsole%2Fpolicy")
    visitor.fill("E-mail", EMAIL)
    visitor.fill("Password", PASSWORD)
    visitor.press("Sign in")
    visitor.is_at("/console/policy")


def test_signing_in_never_redirects_to_another_site(visitor: Visitor) -> None:
    sign_up(visitor)
    for elsewhere in (
        "https://[",
        "https://evil.example/",
        "https://evil.example/console/",
        "//evil.example/console/",
        "/\\evil.example/console/",
        "javascript:alert(1)",
        "/v1/docs",
    ):
        visitor.page.goto(f"{visitor.base}/console/sign-in?next={quote(elsewhere)}")
        visitor.is_at("/console/")


def test_an_account_that_ended_is_signed_out_everywhere(visitor: Visitor) -> None:
    sign_up(visitor)
    User.objects.update(is_active=False)
    visitor.page.goto(f"{visitor.base}/console/security")
    visitor.is_at("/console/sign-in?next=%2Fconsole%2Fsecurity")
