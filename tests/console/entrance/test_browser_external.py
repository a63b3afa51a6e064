"""In a browser: sign in with a provider, link and unlink, against providers on loopback."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django import Settings
from social_core.backends.open_id_connect import OpenIdConnectAuth

from accounts.models import Session, User
from oauth.models import Identity
from oauth.providers.conf import ProviderSettings
from tests import inbox
from tests.cast import member, organization, signed_in, with_proven_address
from tests.console.browser import Visitor
from tests.console.journeys import (
    EMAIL,
    PASSWORD,
    add_account,
    age_proofs,
    next_code,
    sign_out,
    sign_up,
    with_app,
)
from tests.console.layout import NARROW, hold
from tests.console.support import cookie
from tests.oauth.fake_providers import keys
from tests.oauth.fake_providers.apple import KEY_ID, TEAM_ID, AppleServer
from tests.oauth.fake_providers.google import GooglePerson, GoogleServer
from tests.oauth.fake_providers.server import CLIENT_ID, CLIENT_SECRET

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]
Picture = Callable[[Page, str], None]
LINKED = "/console/linked-accounts"


@pytest.fixture
def google(site: str, settings: Settings) -> Iterator[GoogleServer]:
    """Return a fake Google with an account of the address used on the pages."""
    OpenIdConnectAuth.get_jwks_keys_for_uri.invalidate()
    settings.OAUTH = replace(settings.OAUTH, redirect_base_url=site)
    with GoogleServer() as server:
        server.person = GooglePerson(email=EMAIL)
        server.redirect_uris.add(f"{site}/v1/auth/oauth/google/callback")
        provider = ProviderSettings(CLIENT_ID, CLIENT_SECRET, server.url)
        settings.OAUTH = replace(settings.OAUTH, providers={"google": provider})
        yield server


@pytest.fixture
def apple(site: str, google: GoogleServer, settings: Settings) -> Iterator[AppleServer]:
    """Return a fake Apple beside Google."""
    with AppleServer() as server:
        server.redirect_uris.add(f"{site}/v1/auth/oauth/apple/callback")
        provider = ProviderSettings(
            CLIENT_ID,
            base_url=server.url,
            team_id=TEAM_ID,
            key_id=KEY_ID,
            private_key=keys.ec_pem("apple"),
        )
        settings.OAUTH = replace(
            settings.OAUTH, providers=settings.OAUTH.providers | {"apple": provider}
        )
        yield server


def go_with(visitor: Visitor, provider: str = "Google") -> None:
    """Sign in with a provider on the sign-in page."""
    visitor.go("/console/sign-in")
    visitor.press(f"Continue with {provider}")


def test_a_newcomer_signs_in_with_a_provider(
    apple: AppleServer, visitor: Visitor, picture: Picture
) -> None:
    visitor.go("/console/sign-in")
    names = visitor.page.locator("#provider-choices button").all_text_contents()
    assert names == ["Continue with Google", "Continue with Apple"]
    picture(visitor.page, "sign-in-providers")
    visitor.press("Continue with Google")
    visitor.is_at("/console/")
    kept = visitor.cookies()
    assert kept[cookie("access")]["httpOnly"]
    assert Session.objects.get().amr == ["fed"]
    reached = visitor.page.evaluate(
        "JSON.stringify([document.cookie, {...localStorage}, {...sessionStorage}])"
    )
    assert "eyJ" not in reached
    assert "verifier" not in reached
    sign_out(visitor)
    go_with(visitor)
    visitor.is_at("/console/")
    assert User.objects.count() == 1


def test_a_provider_may_answer_with_a_form(apple: AppleServer, visitor: Visitor) -> None:
    go_with(visitor, "Apple")
    visitor.is_at("/console/")
    assert Identity.objects.get().name == "Dora Lake"


def invited(by: str = "alice@example.com") -> str:
    """Invite the person; return the path of the link in the mail."""
    host = with_proven_address(member(organization("Lakes & Sons"), by))
    answer = signed_in(host).post("/v1/invitations", {"email": EMAIL, "roles": ["operator"]})
    assert answer.status == 202, answer.body
    link: str = inbox.messages("mail", "invitation")[-1]["context"]["link"]
    return link[link.index("/console/") :]


def test_an_invited_person_comes_by_a_provider_from_the_invitations_page(
    google: GoogleServer, visitor: Visitor, picture: Picture
) -> None:
    visitor.go(invited())
    visitor.sees("Join Lakes & Sons")
    picture(visitor.page, "invitation-providers")
    visitor.press("Continue with Google")
    visitor.is_at("/console/")
    joined = User.objects.get(email=EMAIL)
    assert (joined.organization.name, joined.roles) == ("Lakes & Sons", ["operator"])


def test_an_invited_person_who_signs_in_with_a_provider_is_asked(
    google: GoogleServer, visitor: Visitor, picture: Picture
) -> None:
    invited()
    go_with(visitor)
    visitor.sees("You are invited")
    visitor.sees("As operator, invited by alice@example.com.")
    picture(visitor.page, "sign-in-invited")
    visitor.press("Join Lakes & Sons")
    visitor.is_at("/console/")
    assert User.objects.get(email=EMAIL).organization.name == "Lakes & Sons"


def test_an_invited_person_may_have_an_organization_of_their_own(
    google: GoogleServer, visitor: Visitor
) -> None:
    invited()
    go_with(visitor)
    visitor.press("Create an organization of my own")
    visitor.is_at("/console/")
    assert User.objects.get(email=EMAIL).roles == ["admin"]


def test_signing_up_offers_the_same(google: GoogleServer, visitor: Visitor) -> None:
    visitor.go("/console/sign-up")
    visitor.press("Continue with Google")
    visitor.is_at("/console/")


def test_signing_in_returns_to_the_requested_page(google: GoogleServer, visitor: Visitor) -> None:
    visitor.page.goto(f"{visitor.base}/console/policy")
    visitor.is_at("/console/sign-in?next=%2Fconsole%2Fpolicy")
    visitor.press("Continue with Google")
    visitor.is_at("/console/policy")


def test_a_refused_consent_is_reported_and_can_be_repeated(
    google: GoogleServer, visitor: Visitor
) -> None:
    google.refuses = "access_denied"
    go_with(visitor)
    visitor.sees("You cancelled the sign-in.")
    visitor.is_at("/console/sign-in")
    google.refuses = ""
    visitor.press("Continue with Google")
    visitor.is_at("/console/")


@pytest.mark.parametrize("query", ["code=x&state=y", "error=access_denied&state=y", "code=x"])
def test_a_provider_response_without_a_start_in_this_tab_does_nothing(
    google: GoogleServer, visitor: Visitor, query: str
) -> None:
    visitor.page.goto(f"{visitor.base}/console/sign-in?{query}&error_description=Evil")
    visitor.sees("This did not begin in this tab. Begin again.")
    visitor.is_at("/console/sign-in")
    expect(visitor.page.get_by_text("Evil")).to_have_count(0)


def test_the_second_factor_is_asked_for(google: GoogleServer, visitor: Visitor) -> None:
    go_with(visitor)
    visitor.is_at("/console/")
    seed = with_app().seed
    sign_out(visitor)
    go_with(visitor)
    visitor.sees("Enter the code that your authenticator app shows.")
    visitor.fill("Code", next_code(seed))
    visitor.page.get_by_label("Trust this device for 30 days").check()
    visitor.press("Verify")
    visitor.is_at("/console/")
    visitor.sees("Password and second factor")
    sign_out(visitor)
    # A trusted device is asked as little as after a password.
    go_with(visitor)
    visitor.is_at("/console/")


def test_an_account_is_linked_and_unlinked(
    apple: AppleServer, visitor: Visitor, picture: Picture
) -> None:
    sign_up(visitor)
    visitor.go("/console/")
    visitor.page.get_by_role("link", name="Linked accounts").click()
    visitor.is_at(LINKED)
    visitor.sees("There are none.")
    visitor.press("Link Google")
    visitor.sees_status("Google is linked.")
    visitor.is_at(LINKED)
    visitor.press("Link Apple")
    visitor.sees_status("Apple is linked.")
    rows = visitor.page.locator("#identity-list strong")
    expect(rows).to_have_text(["Apple", "Google"])
    picture(visitor.page, "linked-accounts")
    visitor.press(f"Unlink: Google {EMAIL}")
    visitor.agrees("Unlink")
    visitor.sees_status("Google is unlinked.")
    expect(rows).to_have_text(["Apple"])
    assert [identity.provider for identity in Identity.objects.all()] == ["apple"]


def test_the_only_sign_in_method_cannot_be_unlinked(google: GoogleServer, visitor: Visitor) -> None:
    go_with(visitor)
    visitor.is_at("/console/")
    visitor.go(LINKED)
    visitor.press(f"Unlink: Google {EMAIL}")
    visitor.agrees("Unlink")
    visitor.sees("This is your only sign-in method.")
    assert Identity.objects.count() == 1


def test_an_account_with_the_same_address_is_signed_in_to_and_linked(
    google: GoogleServer, visitor: Visitor, picture: Picture
) -> None:
    add_account()
    User.objects.update(email_verified_at=timezone.now())
    go_with(visitor)
    visitor.sees("You have an account with this e-mail address.")
    picture(visitor.page, "sign-in-link")
    visitor.fill("E-mail", EMAIL)
    visitor.fill("Password", PASSWORD)
    visitor.press("Sign in")
    visitor.is_at(LINKED)
    visitor.sees_status("Google is linked.")
    sign_out(visitor)
    go_with(visitor)
    visitor.is_at("/console/")
    assert User.objects.count() == 1


def test_an_owner_whose_address_another_account_had_reads_what_became_of_that(
    google: GoogleServer, visitor: Visitor
) -> None:
    add_account()
    go_with(visitor)
    visitor.sees("Another account had your address")
    visitor.sees("so it has lost the address to yours")
    visitor.press("Continue")
    visitor.is_at("/console/")
    assert User.objects.filter(email="").exists()


def test_a_user_without_a_password_confirms_by_signing_in_again(
    google: GoogleServer, visitor: Visitor, picture: Picture
) -> None:
    go_with(visitor)
    visitor.is_at("/console/")
    visitor.go(LINKED)
    age_proofs()
    visitor.press("Link Google")
    visitor.sees("Confirm that it is you")
    picture(visitor.page, "step-up-again")
    visitor.press("No password? Sign in again")
    visitor.press("Continue with Google")
    visitor.is_at(LINKED)
    google.person = GooglePerson(sub="2", email="work@example.org")
    visitor.press("Link Google")
    visitor.sees_status("Google is linked.")
    visitor.sees("work@example.org")


def test_on_another_address_the_page_names_the_right_one(
    google: GoogleServer, visitor: Visitor, settings: Settings
) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    elsewhere = visitor.base.replace("localhost", "zonal.localhost")
    visitor.page.goto(f"{elsewhere}/console/sign-in")
    visitor.settle()
    visitor.press("Continue with Google")
    visitor.is_at("/console/sign-in")
    visitor.press("Continue with Google")
    visitor.is_at("/console/")


def test_without_providers_the_pages_show_none(visitor: Visitor) -> None:
    visitor.go("/console/sign-in")
    expect(visitor.page.locator("#provider-part")).to_be_hidden()
    sign_up(visitor)
    visitor.go(LINKED)
    visitor.sees("There are none.")
    expect(visitor.page.get_by_role("link", name="Linked accounts")).to_have_count(0)
    expect(visitor.page.locator("#link-part")).to_be_hidden()


def test_the_pages_fit_a_narrow_screen_and_the_keyboard(
    apple: AppleServer, visit: Callable[..., Visitor], picture: Picture
) -> None:
    visitor = visit(**NARROW)
    visitor.go("/console/sign-in")
    hold(visitor, "sign-in with providers")
    picture(visitor.page, "sign-in-providers-narrow")
    visitor.go("/console/sign-up")
    hold(visitor, "sign-up with providers")
    visitor.go("/console/sign-in")
    visitor.page.get_by_role("button", name="Continue with Google").focus()
    visitor.page.keyboard.press("Enter")
    visitor.is_at("/console/")
    visitor.go(LINKED)
    visitor.page.get_by_role("button", name="Link Apple").focus()
    visitor.page.keyboard.press("Enter")
    visitor.sees_status("Apple is linked.")
    hold(visitor, "linked accounts")
    picture(visitor.page, "linked-accounts-narrow")
