"""The address moves to the person who proves the mailbox, and the account never does.

The attacks by their names in the literature (Sudhodanan, Paverd: Pre-hijacked accounts, USENIX
Security 2022): a stranger has signed up with the victim's address, and left what they could in the
organization (a trojan identifier).
"""

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounts.models import User
from audit.models import AuditEvent
from tests import inbox
from tests.accounts.api_keys.support import holder
from tests.accounts.profile.support import (
    begin_change,
    mailed_code,
    signed_up,
    user_of,
    verify,
)
from tests.accounts.reclaim.doors import DOORS, NEW_PASSWORD, inside, released
from tests.cast import PASSWORD, Answer, Caller, member, organization, signed_in
from tests.oauth.fake_providers.google import GoogleServer
from tests.organizations.support import accept, invited
from tests.outbox.webhooks.support import added
from tests.parallel import at_once
from tests.twofactor.holder import with_totp
from twofactor.models import Factor

pytestmark = pytest.mark.django_db
VICTIM = "victim@example.com"
# A recovery needs the account before its mail.
ORDERS = [(door, order) for door in DOORS for order in ("before", "after")]
ORDERS.remove(("recovery", "after"))


@pytest.fixture(autouse=True)
def person(google: GoogleServer) -> None:
    """Let the victim have an account at Google."""
    google.person.email = VICTIM


def plain() -> User:
    signed_up(VICTIM)
    return user_of(VICTIM)


def with_factor() -> User:
    with_totp(plain())
    return user_of(VICTIM)


def disabled() -> User:
    User.objects.filter(pk=plain().pk).update(is_active=False)
    return user_of(VICTIM)


def disabled_with_factor() -> User:
    User.objects.filter(pk=with_factor().pk).update(is_active=False)
    return user_of(VICTIM)


HOLDERS = {
    "plain": plain,
    "with a factor": with_factor,
    "disabled": disabled,
    "disabled with a factor": disabled_with_factor,
}


def created(*words: str) -> str:
    out = io.StringIO()
    call_command(*words, stdout=out)
    return out.getvalue()


def come(door: str, order: str, make: Callable[[], User]) -> tuple[User, Answer]:
    """Sign up as the stranger before or after the mail, then come as the victim."""
    if order == "before":
        stranger = make()
        come_back = DOORS[door](VICTIM)
    else:
        come_back = DOORS[door](VICTIM)
        stranger = make()
    return stranger, come_back()


@pytest.mark.parametrize(
    ("door", "order", "kind"),
    [
        (door, order, kind)
        for door, order in ORDERS
        for kind in HOLDERS
        # Nothing is mailed for a disabled account; its organization has to be known, too.
        if (door, kind.partition(" ")[0]) != ("recovery", "disabled")
    ],
)
def test_the_address_moves_at_every_door(door: str, order: str, kind: str) -> None:
    stranger, answer = come(door, order, HOLDERS[kind])
    assert answer.status in {200, 201}, answer.body
    who = inside(answer, VICTIM).get("/v1/whoami").body
    assert (who["email"], who["email_verified"]) == (VICTIM, True)
    assert who["user_id"] != str(stranger.pk)
    assert who["org_id"] != stranger.organization_id
    assert released(stranger)
    assert "address_moved" in inbox.notices_to(VICTIM)
    # The account keeps everything else.
    kept = User.objects.get(pk=stranger.pk)
    for field in ("password", "roles", "is_active", "organization_id"):
        assert getattr(kept, field) == getattr(stranger, field), field
    factors = Factor.objects.filter(user=stranger, method="totp")
    assert factors.exists() == ("factor" in kind)
    # Its organization must not learn where the owner is.
    event = AuditEvent.objects.get(tag="api:email:release")
    assert (event.organization_id, event.address) == (stranger.organization_id, "")
    assert VICTIM not in f"{event.actor} {event.data}"


@pytest.mark.parametrize("door", ["link", "invitation", "provider"])
def test_a_sign_in_says_that_the_address_has_moved(door: str) -> None:
    _, answer = come(door, "before", plain)
    assert answer.body["warnings"] == [{"code": "address_moved"}]


@pytest.mark.parametrize("door", ["link", "invitation", "provider"])
def test_a_free_address_is_no_move(door: str) -> None:
    assert DOORS[door](VICTIM)().body["warnings"] == []
    assert "address_moved" not in inbox.notices_to(VICTIM)


@pytest.mark.parametrize("door", DOORS)
def test_nothing_and_no_member_that_the_stranger_left_reaches_the_owner(door: str) -> None:
    """Whoever made it: the stranger, or an accomplice who has joined meanwhile."""
    stranger = signed_up(VICTIM)
    user = user_of(VICTIM)
    assert accept(invited(user, "two@example.com", roles=["admin"])).status == 201
    accomplice = signed_in(user_of("two@example.com"))
    open_invitation = invited(user, "three@example.com", roles=["admin"])
    stranger.post("/v1/environments", {"id": "stage"})
    stranger.post("/v1/domains", {"domain": "evil.example"})
    key = holder(user_of("two@example.com"))
    added(user, "https://evil.example/", "member.added")

    owner = inside(DOORS[door](VICTIM)(), VICTIM)
    mine = owner.get("/v1/whoami").body
    assert mine["org_id"] != user.organization_id
    if mine["roles"] == ["admin"]:
        members = [row["email"] for row in owner.get("/v1/members").body["results"]]
        assert not {"two@example.com", "three@example.com"} & set(members)
        for path in ("/v1/api-keys", "/v1/webhooks", "/v1/domains"):
            assert owner.get(path).body["results"] == [], path
    places = [row["id"] for row in owner.get("/v1/environments").body["results"]]
    assert places == ["live", "sandbox"]
    # Nor the owner any of them.
    assert accomplice.get(f"/v1/members/{mine['user_id']}").status == 404
    assert accomplice.call("DELETE", f"/v1/members/{mine['user_id']}").status == 404
    assert accept(open_invitation).status == 201
    assert user_of("three@example.com").organization_id == user.organization_id
    assert key.get("/v1/whoami").body["org_id"] == user.organization_id
    for session in (stranger, stranger.holding(stranger.refresh())):
        assert session.get("/v1/whoami").code == "email_required"


def test_a_sign_up_link_names_the_organization() -> None:
    _, answer = come("link", "before", plain)
    assert inside(answer, VICTIM).get("/v1/whoami").body["organization"] == "Real Acme"


@pytest.mark.parametrize("door", DOORS)
def test_the_strangers_password_does_not_open_the_owners_account(door: str) -> None:
    come(door, "before", plain)
    body = {"email": VICTIM, "password": PASSWORD}
    assert Caller().post("/v1/auth/login", body).code == "invalid_credentials"


@pytest.mark.parametrize("door", DOORS)
def test_a_pending_change_of_the_stranger_ends(door: str) -> None:
    stranger = signed_up(VICTIM)
    own_code = mailed_code(VICTIM)
    come_back = DOORS[door](VICTIM)
    begin_change(stranger, "stranger@evil.example")
    code = mailed_code("stranger@evil.example")
    come_back()
    assert verify(stranger, own_code).code == "email_code_gone"
    assert verify(stranger, code).code == "email_code_gone"
    assert user_of(VICTIM).email_verified_at is not None


@pytest.mark.parametrize("door", ["link", "invitation", "change", "provider"])
def test_a_verified_account_never_loses_its_address(door: str) -> None:
    come_back = DOORS[door](VICTIM)
    caller = signed_up(VICTIM)
    verify(caller, mailed_code(VICTIM))
    answer = come_back()
    expected = "link_required" if door == "provider" else "email_taken"
    assert (answer.status, answer.code) == (409, expected)
    assert caller.get("/v1/whoami").body["email"] == VICTIM
    assert "address_moved" not in inbox.notices_to(VICTIM)


def test_recovery_gives_a_verified_account_to_its_owner() -> None:
    verify(signed_up(VICTIM), mailed_code(VICTIM))
    user = user_of(VICTIM)
    kept = invited(user, "friend@example.com")
    who = inside(DOORS["recovery"](VICTIM)(), VICTIM).get("/v1/whoami").body
    assert who["user_id"] == str(user.pk)
    assert accept(kept).status == 201


@pytest.mark.parametrize("door", DOORS)
def test_staff_never_lose_their_address(door: str) -> None:
    signed_up("staff@example.com")
    user = user_of("staff@example.com")
    User.objects.filter(pk=user.pk).update(email=VICTIM, is_staff=True)
    if door in {"provider", "recovery"}:
        come_back = DOORS[door](VICTIM)
    else:
        User.objects.filter(pk=user.pk).update(email="staff@example.com")
        come_back = DOORS[door](VICTIM)
        User.objects.filter(pk=user.pk).update(email=VICTIM)
    come_back()
    assert user_of(VICTIM).pk == user.pk


@pytest.mark.parametrize(
    ("door", "template"),
    [("link", "signup_link"), ("invitation", "invitation"), ("change", "email_verification")],
)
def test_the_mailbox_of_an_unverified_account_gets_the_mail_of_a_free_address(
    door: str, template: str
) -> None:
    signed_up(VICTIM)
    DOORS[door](VICTIM)
    assert inbox.notices_to(VICTIM)[-1] == template


def prepared() -> User:
    """Return a member as an operator imports them: without a password, and never used."""
    return member(organization(), VICTIM, role="operator")


@pytest.mark.parametrize("door", ["provider", "recovery"])
def test_an_account_that_an_operator_prepared_is_the_owners(door: str) -> None:
    user, answer = come(door, "before", prepared)
    who = inside(answer, VICTIM).get("/v1/whoami").body
    assert (who["user_id"], who["email_verified"], who["roles"]) == (
        str(user.pk),
        True,
        ["operator"],
    )
    assert "address_moved" not in inbox.notices_to(VICTIM)


@pytest.mark.parametrize("door", ["link", "invitation", "change"])
def test_the_owner_of_a_prepared_account_may_choose_another_organization(door: str) -> None:
    user, answer = come(door, "before", prepared)
    who = inside(answer, VICTIM).get("/v1/whoami").body
    assert who["org_id"] != user.organization_id
    assert released(user)


@pytest.mark.parametrize("door", ["provider", "recovery"])
def test_a_prepared_account_that_was_used_is_not_the_owners(door: str) -> None:
    user = prepared()
    signed_in(user)
    assert inside(DOORS[door](VICTIM)(), VICTIM).get("/v1/whoami").body["user_id"] != str(user.pk)


def test_an_invited_member_whom_an_operator_has_prepared_too_joins_once() -> None:
    user = prepared()
    inviter = member(user.organization, "inviter@example.com")
    answer = accept(invited(inviter, VICTIM, roles=["reader"]), NEW_PASSWORD)
    who = inside(answer, VICTIM).get("/v1/whoami").body
    assert (who["user_id"], who["roles"]) == (str(user.pk), ["reader"])


@pytest.mark.parametrize("door", ["provider", "recovery"])
def test_an_invitation_ends_when_the_prepared_member_comes_another_way(door: str) -> None:
    user = prepared()
    inviter = member(user.organization, "inviter@example.com")
    token = invited(inviter, VICTIM, roles=["admin"])
    assert user_of(VICTIM).roles == ["operator"]
    answer = DOORS[door](VICTIM)()
    assert inside(answer, VICTIM).get("/v1/whoami").body["roles"] == ["operator"]
    (listed,) = signed_in(inviter).get("/v1/invitations").body["results"]
    assert (listed["state"], accept(token).code) == ("accepted", "invitation_gone")


def test_an_invitation_does_not_open_an_account_whose_address_has_moved() -> None:
    home = organization()
    words = ("createuser", VICTIM, "--organization", str(home.pk), "--role", "admin", "--invite")
    call_command(*words, stdout=io.StringIO())
    token = inbox.secret_of(inbox.messages("mail", "invitation")[-1])
    user = user_of(VICTIM)
    assert DOORS["link"](VICTIM)().status == 201
    assert accept(token).code == "invitation_gone"
    assert not User.objects.get(pk=user.pk).has_usable_password()


def test_an_operator_prepares_no_account_twice() -> None:
    prepared()
    with pytest.raises(CommandError, match="has an account already"):
        created("createorganization", "Real Acme", "--admin", VICTIM)


# --- what an operator creates


@pytest.mark.parametrize("how", ["--no-password", "--invite"])
def test_an_operator_creates_an_account_whose_address_was_never_verified(how: str) -> None:
    stranger, home = plain(), organization()
    created("createuser", VICTIM, "--organization", str(home.pk), "--role", "reader", how)
    assert released(stranger)
    assert user_of(VICTIM).organization_id == home.pk


def test_an_operator_creates_an_organization_for_such_an_admin() -> None:
    stranger = plain()
    created("createorganization", "Real Acme", "--admin", VICTIM)
    assert released(stranger)
    assert user_of(VICTIM).organization.name == "Real Acme"


def test_a_dry_run_takes_no_address() -> None:
    stranger = plain()
    created("createorganization", "Real Acme", "--admin", VICTIM, "--dry-run")
    assert user_of(VICTIM).pk == stranger.pk


def test_an_operator_does_not_take_the_address_of_a_member() -> None:
    user = plain()
    words = ("createuser", VICTIM, "--organization", str(user.organization_id), "--role", "reader")
    with pytest.raises(CommandError, match="has an account already"):
        created(*words, "--no-password")
    assert user_of(VICTIM).pk == user.pk


def test_an_operator_does_not_take_a_verified_address() -> None:
    user = plain()
    User.objects.filter(pk=user.pk).update(email_verified_at=timezone.now())
    with pytest.raises(CommandError, match="has an account already"):
        created("createorganization", "Real Acme", "--admin", VICTIM)


def test_a_stranger_does_not_become_staff() -> None:
    plain()
    with pytest.raises(CommandError, match="never verified the address"):
        created("createstaff", VICTIM)
    assert not User.objects.filter(is_staff=True).exists()
    User.objects.update(email_verified_at=timezone.now())
    created("createstaff", VICTIM)
    assert user_of(VICTIM).is_staff


def test_an_import_leaves_out_an_address_that_was_never_verified(tmp_path: Path) -> None:
    stranger, home = plain(), organization()
    file = tmp_path / "members.csv"
    file.write_text(f"email,roles\ndora@example.com,reader\n{VICTIM},reader\n")
    text = created("importmembers", str(file), "--organization", str(home.pk))
    assert f"line 3, email: {VICTIM} has an account that never verified it" in text
    assert user_of("dora@example.com").organization_id == home.pk
    assert user_of(VICTIM).pk == stranger.pk


# --- at the same time


@pytest.mark.django_db(transaction=True)
def test_of_two_proofs_at_once_one_gets_the_address() -> None:
    stranger = plain()
    doors = [DOORS[name](VICTIM) for name in ("link", "invitation", "change", "provider")]
    answers = at_once(*doors)
    winners = [answer for answer in answers if answer.status in {200, 201}]
    assert len(winners) == 1, [answer.body for answer in answers]
    assert {answer.status for answer in answers} <= {200, 201, 409}
    assert released(stranger)
    assert user_of(VICTIM).email_verified_at is not None


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("door", DOORS)
def test_a_code_that_the_stranger_types_meanwhile_has_one_winner(door: str) -> None:
    caller = signed_up(VICTIM)
    stranger, code = user_of(VICTIM), mailed_code(VICTIM)
    come_back = DOORS[door](VICTIM)
    came, typed = at_once(come_back, lambda: verify(caller, code))
    is_kept = user_of(VICTIM).pk == stranger.pk
    assert is_kept == (typed.status == 200), (came.body, typed.body)
    assert released(stranger) != is_kept
    assert user_of(VICTIM).email_verified_at is not None


@pytest.mark.django_db(transaction=True)
def test_two_accounts_may_change_to_each_others_address_at_once() -> None:
    first, second = signed_up("first@example.com"), signed_up("second@example.com")
    begin_change(first, "second@example.com")
    begin_change(second, "first@example.com")
    codes = mailed_code("second@example.com"), mailed_code("first@example.com")
    answers = at_once(lambda: verify(first, codes[0]), lambda: verify(second, codes[1]))
    assert sorted(answer.status for answer in answers) == [200, 410]
