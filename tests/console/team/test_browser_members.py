"""In a browser: members invited, changed, disabled, removed; an invitation accepted."""

from collections.abc import Callable
from dataclasses import replace

import pyotp
import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django import Settings

from accounts.models import User
from environments.models import Organization
from oauth.models import Domain, Identity
from oauth.providers.conf import ProviderSettings
from organizations.models import Invitation
from tests import inbox
from tests.accounts.api_keys.support import made
from tests.cast import member, signed_in
from tests.console.browser import Visitor
from tests.console.journeys import EMAIL, PASSWORD, age_proofs, sign_up
from tests.console.layout import ON_BOTH_SIZES, hold_panel
from tests.twofactor.webauthn.authenticator import Authenticator
from tests.twofactor.webauthn.holder import with_passkey
from twofactor.factors import holdings

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]
Picture = Callable[[Page, str], None]
GUEST = "erik@example.com"


def home_of(email: str = EMAIL) -> Organization:
    home: Organization = User.objects.get(email=email).organization
    return home


def link_in_mail(to: str = GUEST) -> str:
    """Return the path of the link in the invitation that was mailed last."""
    mails = [mail for mail in inbox.messages("mail", "invitation") if mail["to"] == to]
    address: str = mails[-1]["context"]["link"]
    return address[address.index("/console/") :]


def invite(visitor: Visitor, email: str = GUEST, role: str = "Operator") -> None:
    visitor.go("/console/members")
    visitor.press("Invite members")
    visitor.fill("E-mail addresses", email)
    visitor.page.locator("#invite").get_by_label(role).check()
    visitor.press("Send invitations")
    visitor.sees_status(f"An invitation is on its way to {email}.")


def test_from_an_invitation_to_a_member(
    visitor: Visitor, visit: Callable[..., Visitor], picture: Picture
) -> None:
    sign_up(visitor)
    User.objects.filter(email=EMAIL).update(email_verified_at=timezone.now())
    invite(visitor)
    visitor.sees("Open until")
    picture(visitor.page, "members")

    guest = visit()
    guest.go(link_in_mail())
    guest.sees("Join Lakes & Sons")
    guest.sees(f"{EMAIL} invites you to join as operator and reader.")
    assert "#" not in guest.page.url
    picture(guest.page, "invitation")
    guest.fill("Choose a password", "short")
    guest.press("Accept and sign in")
    expect(guest.page.locator("#password-error")).to_have_text("At least 8 characters.")
    guest.fill("Choose a password", PASSWORD)
    guest.press("Accept and sign in")
    guest.is_at("/console/")
    guest.sees(GUEST)
    expect(guest.page.locator("#unverified")).to_be_hidden()

    visitor.go("/console/members")
    visitor.sees("There are no open invitations.")
    expect(visitor.page.locator("#member-list > li")).to_have_count(2)
    visitor.sees("operator")

    # As an operator the guest sees who is there, and can change nothing.
    guest.go("/console/members")
    guest.sees(EMAIL)
    expect(guest.page.get_by_role("button", name="Remove")).to_have_count(0)
    expect(guest.page.get_by_role("button", name="Invite members")).to_be_hidden()
    expect(guest.page.locator("#member-list .menu:visible")).to_have_count(0)


def test_a_used_link_says_so(visitor: Visitor, visit: Callable[..., Visitor]) -> None:
    sign_up(visitor)
    invite(visitor)
    Invitation.objects.all().delete()
    guest = visit()
    guest.go(link_in_mail())
    guest.sees("This invitation can no longer be accepted.")
    expect(guest.page.get_by_label("Token of the invitation")).to_be_visible()


def test_a_signed_in_user_is_warned_before_accepting(visitor: Visitor) -> None:
    sign_up(visitor)
    invite(visitor)
    visitor.go(link_in_mail())
    visitor.sees("You are signed in as")
    visitor.fill("Choose a password", PASSWORD)
    visitor.press("Accept and sign in")
    visitor.is_at("/console/")
    visitor.sees(GUEST)


def test_a_required_second_factor_is_set_up_while_accepting(
    visitor: Visitor, visit: Callable[..., Visitor], picture: Picture
) -> None:
    sign_up(visitor)
    invite(visitor)
    Organization.objects.update(mfa_required=True, mfa_grace_period_days=0)
    guest = visit()
    guest.go(link_in_mail())
    guest.fill("Choose a password", PASSWORD)
    guest.press("Accept and sign in")
    guest.sees("Your account was created.")
    picture(guest.page, "invitation-enrolment")
    guest.press("Authenticator app")
    key = guest.page.locator("#totp-key")
    expect(key).not_to_be_empty()
    guest.fill("Code", pyotp.TOTP((key.text_content() or "").replace(" ", "")).now())
    guest.press("Turn on")
    guest.sees("Keep your backup codes")
    guest.press("I have saved them")
    guest.is_at("/console/")
    guest.sees("Password and second factor")


def test_an_invitation_is_sent_again_as_it_is_now_and_revoked(visitor: Visitor) -> None:
    sign_up(visitor)
    invite(visitor)
    first = link_in_mail()
    with visitor.page.expect_response(f"{visitor.base}/v1/invitations") as answer:
        visitor.press(f"Send again: {GUEST}")
    assert answer.value.status == 202
    visitor.settle()
    expect(visitor.page.locator("#invitation-list li")).to_have_count(1)
    assert link_in_mail() != first
    # Elsewhere it is given the least role: this page does not give the other one back.
    admin = signed_in(User.objects.get(email=EMAIL))
    assert admin.post("/v1/invitations", {"email": GUEST, "roles": ["reader"]}).status == 202
    visitor.press(f"Send again: {GUEST}")
    visitor.sees(f"The invitation of {GUEST} was replaced, accepted or revoked meanwhile.")
    assert Invitation.objects.get(revoked_at=None).roles == ["reader"]
    visitor.press(f"Revoke: {GUEST}")
    visitor.agrees("Revoke")
    visitor.sees_status(f"The invitation of {GUEST} is revoked.")
    visitor.sees("There are no open invitations.")
    expect(visitor.page.get_by_role("heading", name="Waiting")).to_be_focused()


@ON_BOTH_SIZES
def test_many_are_invited_at_once_and_each_learns_what_became_of_it(
    visitor: Visitor, picture: Picture
) -> None:
    sign_up(visitor)
    member(home_of(), "bob@example.com", password=PASSWORD)
    visitor.go("/console/members")
    visitor.press("Invite members")
    pasted = f'"Lake, Erik" <{GUEST}>; bob@example.com\nfreya@example.com nonsense, {GUEST.upper()}'
    visitor.fill("E-mail addresses", pasted)
    picture(visitor.page, "members-invite")
    visitor.press("Send invitations")
    results = visitor.page.locator("#invite-results li")
    expect(results).to_have_text(
        [
            f"{GUEST}Invited.",
            "bob@example.comThis person is a member already.",
            "freya@example.comInvited.",
            "nonsenseEnter a valid email address.",
        ]
    )
    expect(visitor.page.get_by_role("heading", name="2 of 4 invitations sent")).to_be_focused()
    # What was refused is left to be corrected.
    expect(visitor.field("E-mail addresses")).to_have_value("bob@example.com\nnonsense")
    picture(visitor.page, "members-invited")
    hold_panel(visitor, "results of invitations")
    visitor.press("Close")
    expect(visitor.page.locator("#invitation-list li")).to_have_count(2)
    assert sorted(Invitation.objects.values_list("email", flat=True)) == [
        GUEST,
        "freya@example.com",
    ]
    visitor.press("Invite members")
    visitor.fill("E-mail addresses", "bob@example.com")
    visitor.press("Send invitations")
    visitor.sees("This person is a member already.")


def test_a_member_is_changed_disabled_and_removed(visitor: Visitor, picture: Picture) -> None:
    sign_up(visitor)
    bob = member(home_of(), "bob@example.com", role="reader")
    visitor.go("/console/members")
    visitor.press("Change: bob@example.com")
    dialog = visitor.page.get_by_role("dialog", name="bob@example.com")
    expect(dialog.get_by_label("Reader")).to_be_checked()
    dialog.get_by_label("Operator").check()
    dialog.get_by_label("Labels").fill("sales, night shift")
    picture(visitor.page, "members-change")
    dialog.get_by_role("button", name="Save").click()
    visitor.sees_status("bob@example.com is changed.")
    visitor.sees("sales, night shift")
    bob.refresh_from_db()
    assert (bob.roles, bob.labels) == (["operator", "reader"], ["sales", "night shift"])

    visitor.page.get_by_label("Actions: bob@example.com").click()
    picture(visitor.page, "members-menu")
    visitor.press("Disable: bob@example.com")
    visitor.agrees("Disable")
    visitor.sees_status("bob@example.com is disabled.")
    visitor.press("Enable: bob@example.com")
    visitor.sees_status("bob@example.com is enabled.")

    User.objects.filter(pk=bob.pk).update(roles=["admin"])
    made(bob, name="nightly import")
    visitor.press("Remove: bob@example.com")
    visitor.sees("What was created as an admin ends with it: API key nightly import (live).")
    picture(visitor.page, "members-removal")
    visitor.agrees("Remove")
    visitor.sees_status("bob@example.com is removed.")
    expect(visitor.page.locator("#member-list > li")).to_have_count(1)
    # The focus goes to the row that is there now.
    expect(visitor.page.get_by_label(f"Actions: {EMAIL}")).to_be_focused()


def test_the_last_admin_sees_why_a_change_is_refused(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.go("/console/members")
    visitor.press(f"Remove: {EMAIL}")
    visitor.agrees("Remove")
    visitor.sees("An organization needs an admin.")
    visitor.press(f"Change: {EMAIL}")
    dialog = visitor.page.get_by_role("dialog", name=EMAIL)
    dialog.get_by_label("Admin").uncheck()
    dialog.get_by_label("Reader").check()
    dialog.get_by_role("button", name="Save").click()
    visitor.agrees("Change")
    expect(dialog.get_by_role("alert")).to_contain_text("An organization needs an admin.")
    assert User.objects.get().roles == ["admin"]


def test_members_are_searched_and_shown_page_by_page(visitor: Visitor) -> None:
    sign_up(visitor)
    for number in range(60):
        member(home_of(), f"user{number}@example.com", role="reader")
    visitor.go("/console/members")
    rows = visitor.page.locator("#member-list > li")
    expect(rows).to_have_count(50)
    visitor.press("Show more")
    expect(rows).to_have_count(61)
    expect(visitor.page.get_by_role("button", name="Show more")).to_be_hidden()
    visitor.page.get_by_label("Search by e-mail").fill("USER59@")
    expect(rows).to_have_count(1)
    visitor.field("Role").select_option("Admin")
    visitor.sees("No member with this role has such an address.")
    visitor.page.get_by_label("Search by e-mail").fill("")
    expect(rows).to_contain_text([EMAIL])
    visitor.page.reload()
    visitor.settle()
    expect(rows).to_contain_text([EMAIL])
    visitor.field("Role").select_option("Any")
    expect(rows).to_have_count(50)
    visitor.page.get_by_label("Search by e-mail").fill("nobody")
    visitor.sees("No member has such an address.")


def test_a_change_asks_for_a_recent_proof(visitor: Visitor) -> None:
    sign_up(visitor)
    age_proofs()
    visitor.go("/console/members")
    visitor.press("Invite members")
    visitor.fill("E-mail addresses", GUEST)
    visitor.press("Send invitations")
    visitor.sees("Confirm that it is you")
    visitor.fill("Password", PASSWORD)
    visitor.press("Confirm")
    visitor.sees_status(f"An invitation is on its way to {GUEST}.")


def test_a_page_that_is_not_for_readers_says_so(visitor: Visitor) -> None:
    sign_up(visitor)
    User.objects.update(roles=["reader"])
    for page, things in (
        ("members", "members of the organization"),
        ("api-keys", "API keys"),
        ("audit", "audit trail"),
        ("webhooks", "webhooks"),
    ):
        visitor.go(f"/console/{page}")
        visitor.sees(f"Only admins and operators see the {things}.")
    visitor.go("/console/policy")
    visitor.sees("Only admins can change the policy.")
    expect(visitor.page.get_by_label("Days to set one up")).to_be_disabled()
    expect(visitor.page.get_by_role("button", name="Save")).to_be_hidden()


def test_inviting_works_by_keyboard_alone(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.go("/console/members")
    keyboard = visitor.page.keyboard
    visitor.page.get_by_role("button", name="Invite members").focus()
    keyboard.press("Enter")
    keyboard.type(GUEST)
    visitor.page.get_by_role("button", name="Send invitations").focus()
    keyboard.press("Enter")
    visitor.sees_status(f"An invitation is on its way to {GUEST}.")
    menu = visitor.page.get_by_label(f"Actions: {EMAIL}")
    menu.focus()
    keyboard.press("Enter")
    keyboard.press("Tab")
    keyboard.press("Enter")
    dialog = visitor.page.get_by_role("dialog", name=EMAIL)
    expect(dialog).to_be_visible()
    keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(menu).to_be_focused()
    keyboard.press("Enter")
    expect(visitor.page.get_by_role("button", name=f"Change: {EMAIL}")).to_be_visible()
    keyboard.press("Escape")
    expect(visitor.page.get_by_role("button", name=f"Change: {EMAIL}")).to_be_hidden()


def test_an_admin_resets_a_member_s_factors_with_a_reason(visitor: Visitor) -> None:
    sign_up(visitor)
    with_passkey(member(home_of(), GUEST, role="reader"), Authenticator(origin=visitor.base))
    visitor.go("/console/members")
    # One's own are removed on the page of security.
    visitor.page.get_by_label(f"Actions: {EMAIL}").click()
    own = visitor.page.get_by_role("button", name=f"Reset second factors: {EMAIL}")
    expect(own).to_be_hidden()
    visitor.page.keyboard.press("Escape")
    visitor.press(f"Reset second factors: {GUEST}")
    visitor.press("Reset second factors")
    visitor.sees("This is needed.")
    visitor.fill("Reason", "lost the phone, called back")
    visitor.press("Reset second factors")
    visitor.sees_status(f"The second factors of {GUEST} are removed.")
    assert not holdings.holdings_of(User.objects.get(email=GUEST).pk).enabled


def test_a_domain_is_claimed_with_its_record_and_removed(visitor: Visitor) -> None:
    sign_up(visitor)
    visitor.go("/console/members")
    visitor.fill("Add a domain", "lakes.example")
    visitor.press("Add")
    expect(visitor.page.get_by_role("button", name="Remove lakes.example")).to_be_visible()
    visitor.sees(Domain.objects.get().token)
    visitor.press("Remove lakes.example")
    visitor.agrees("Remove")
    expect(visitor.page.locator("#domain-list")).to_have_text("There are none.")


def test_an_admin_sees_which_providers_sign_members_in(
    visitor: Visitor, settings: Settings, picture: Picture
) -> None:
    sign_up(visitor)
    visitor.go("/console/members")
    expect(visitor.page.locator("#provider-list")).to_contain_text("The platform offers none")
    google = ProviderSettings(client_id="x", client_secret="y", base_url="https://google.example")
    settings.OAUTH = replace(settings.OAUTH, providers={"google": google})
    for number, email in enumerate((EMAIL, GUEST)):
        user = User.objects.filter(email=email).first() or member(home_of(), email, role="reader")
        for provider in ("google", "github")[: 2 - number]:
            Identity.objects.create(
                organization_id=user.organization_id,
                user=user,
                provider=provider,
                subject=str(number),
                created_at=timezone.now(),
            )
    visitor.go("/console/members")
    rows = visitor.page.locator("#provider-list li")
    expect(rows).to_contain_text(
        [f"Google offered 2 members: {EMAIL}, {GUEST}", f"GitHub switched off 1 member: {EMAIL}"]
    )
    picture(visitor.page, "members-providers")
