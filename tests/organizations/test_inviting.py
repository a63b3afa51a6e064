"""Inviting: the admin learns nothing, the mailbox's owner all; caps; replaced and revoked."""

import io
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from accounts.models import Session, User
from audit.models import AuditEvent
from environments.models import Organization
from organizations import tasks
from organizations.models import Invitation
from outbox.models import Delivery
from tests import inbox
from tests.accounts.profile.support import begin_change, mailed_code, verify
from tests.cast import PASSWORD, Answer, Caller, member, signed_in, with_proven_address
from tests.organizations.support import DORA, PATH, accept, invite, invited, mailed_token, preview
from tests.parallel import at_once
from tests.queries import statements
from tests.twofactor.holder import with_totp

pytestmark = pytest.mark.django_db


def without_ids(answer: Answer) -> dict[str, Any]:
    return {key: value for key, value in answer.body.items() if key not in {"id", "email"}}


def test_an_invitation_is_mailed_with_a_link_whose_token_stays_with_the_browser(
    alice: User,
) -> None:
    with_proven_address(alice)
    answer = invite(alice, "Dora@Example.com", roles=["reader", "operator"], labels=["sales"])
    assert answer.status == 202
    assert set(answer.body) == {
        "id",
        "email",
        "roles",
        "labels",
        "state",
        "invited_by",
        "created_at",
        "expires_at",
    }
    assert answer.body["email"] == "Dora@example.com"
    assert answer.body["roles"] == ["operator", "reader"]
    assert answer.body["labels"] == ["sales"]
    assert answer.body["state"] == "pending"
    assert answer.body["invited_by"] == "alice@example.com"
    (mail,) = inbox.messages("mail")
    assert mail["to"] == "Dora@example.com"
    assert mail["template"] == "invitation"
    assert mail["context"]["organization"] == "Alice's"
    assert mail["context"]["by"] == "alice@example.com"
    # Behind the # a browser sends it to no server.
    address, _, fragment = mail["context"]["link"].partition("#")
    assert address.endswith("/console/invitation")
    assert len(fragment.removeprefix("token=")) >= 43


def test_seven_days(alice: User) -> None:
    invite(alice)
    row = Invitation.objects.get()
    assert row.expires_at - row.created_at == timedelta(days=7)
    assert Delivery.objects.get().expires_at == row.expires_at


def test_no_token_is_kept_or_shown(alice: User) -> None:
    token = invited(alice)
    shown = str(Invitation.objects.values()) + str(AuditEvent.objects.values())
    shown += signed_in(alice).get(PATH).raw.content.decode()
    assert token not in shown


def test_the_admin_does_not_learn_whether_an_address_has_an_account_elsewhere(
    alice: User, charlie: User
) -> None:
    unknown = invite(alice, "nobody@example.com")
    elsewhere = invite(alice, "CHARLIE@example.org")
    assert unknown.status == elsewhere.status == 202
    assert without_ids(elsewhere).keys() == without_ids(unknown).keys()
    assert elsewhere.body["state"] == "pending"
    listed = signed_in(alice).get(PATH).body["results"]
    assert {row["state"] for row in listed} == {"pending"}
    assert len({len(row.digest) for row in Invitation.objects.all()}) == 1


def test_a_member_is_not_invited_again_whatever_state_it_is_in(
    home: Organization, alice: User
) -> None:
    bob = member(home, "bob@example.com", password=PASSWORD)
    for state in ({}, {"email_verified_at": timezone.now()}, {"is_active": False}):
        User.objects.filter(pk=bob.pk).update(**state)
        answer = invite(alice, "BOB@Example.com")
        assert (answer.status, answer.code) == (409, "already_member")
    assert not Invitation.objects.exists()
    assert not inbox.messages("mail")
    # It does not count against what may be sent in a day, either.
    for _ in range(12):
        assert invite(alice, "bob@example.com").code == "already_member"
    assert invite(alice).status == 202


def test_both_kinds_of_address_cost_the_same(alice: User, charlie: User) -> None:
    """The clock tells nothing, either: the same statements, the same number of mails."""
    caller, costs = signed_in(alice), []
    assert caller.get(PATH).status == 200
    for email in ("nobody@example.com", "charlie@example.org"):
        before = Delivery.objects.count()
        with CaptureQueriesContext(connection) as queries:
            assert caller.post(PATH, {"email": email, "roles": ["reader"]}).status == 202
        costs.append((statements(queries), Delivery.objects.count() - before))
    assert costs[0] == costs[1]


def test_only_the_mailbox_learns_that_it_has_an_account(alice: User, charlie: User) -> None:
    with_proven_address(charlie)
    invite(alice, "charlie@example.org")
    (mail,) = inbox.messages("mail")
    assert (mail["to"], mail["template"]) == ("charlie@example.org", "invitation_conflict")
    assert Delivery.objects.get().organization_id == charlie.organization_id
    # Nothing in it lets anybody in.
    assert "#" not in mail["context"]["link"]
    assert User.objects.get(pk=charlie.pk).organization_id != alice.organization_id


def test_a_new_invitation_replaces_the_one_before(alice: User) -> None:
    first = invited(alice, roles=["admin"])
    second = invited(alice, "DORA@example.com".lower(), roles=["reader"])
    assert accept(first).code == "invitation_gone"
    assert accept(second).status == 201
    assert User.objects.get(email=DORA).roles == ["reader"]


def test_an_address_may_be_invited_by_two_organizations(alice: User, charlie: User) -> None:
    first = invited(alice)
    second = invited(charlie)
    assert accept(first).status == 201
    # Only the token's holder learns it.
    assert (accept(second).status, accept(second).code) == (409, "email_taken")


def test_a_revoked_invitation_is_invalid_immediately(alice: User) -> None:
    token = invited(alice)
    row = Invitation.objects.get()
    caller = signed_in(alice)
    assert caller.call("DELETE", f"{PATH}/{row.pk}").status == 204
    assert accept(token).code == "invitation_gone"
    assert preview(token).code == "invitation_gone"
    assert caller.call("DELETE", f"{PATH}/{row.pk}").code == "invitation_not_found"
    assert caller.call("DELETE", f"{PATH}/nonsense").code == "invitation_not_found"
    assert caller.get(PATH).body["results"][0]["state"] == "revoked"
    assert AuditEvent.objects.get(tag="api:invitation:delete").data["email"] == DORA


def test_an_accepted_invitation_cannot_be_revoked(alice: User) -> None:
    token = invited(alice)
    assert accept(token).status == 201
    row = Invitation.objects.get()
    answer = signed_in(alice).call("DELETE", f"{PATH}/{row.pk}")
    assert (answer.status, answer.code) == (404, "invitation_not_found")


def test_invitations_are_listed_and_filtered(alice: User) -> None:
    now = timezone.now()
    with time_machine.travel(now - timedelta(days=8)):
        invite(alice, "expired@example.com")
    revoked = invite(alice, "revoked@example.com").body["id"]
    signed_in(alice).call("DELETE", f"{PATH}/{revoked}")
    accept(invited(alice, "accepted@example.com"))
    invite(alice, "pending@example.com")
    caller = signed_in(alice)
    for state in ("pending", "expired", "accepted", "revoked"):
        rows = caller.get(f"{PATH}?state={state}").body["results"]
        assert [(row["email"], row["state"]) for row in rows] == [(f"{state}@example.com", state)]
    assert len(caller.get(PATH).body["results"]) == 4
    assert len(caller.get(f"{PATH}?email=PENDING").body["results"]) == 1
    assert caller.get(f"{PATH}?state=open").code == "invalid_request"


def test_the_daily_cap_of_an_organization(
    alice: User, charlie: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("organizations.invitations.PER_ORGANIZATION_A_DAY", 2)
    for number in range(2):
        assert invite(alice, f"user{number}@example.com").status == 202
    answer = invite(alice, "user9@example.com")
    assert (answer.status, answer.code) == (429, "inviting_too_often")
    assert 0 < int(answer.headers["Retry-After"]) <= 86400
    assert not Invitation.objects.filter(email="user9@example.com").exists()
    assert invite(charlie, "user9@example.com").status == 202


def test_an_invitation_names_no_unverified_inviter(alice: User) -> None:
    token = invited(alice)
    assert inbox.messages("mail", "invitation")[-1]["context"]["by"] == ""
    assert preview(token).body["invited_by"] is None


def test_an_unverified_address_invites_few(alice: User) -> None:
    """Accounts are free, and the name of an organization can be an advertisement."""
    statuses = [invite(alice, f"user{number}@example.com").status for number in range(11)]
    assert statuses == [202] * 10 + [429]
    with_proven_address(alice)
    assert invite(alice, "user11@example.com").status == 202


def test_many_organizations_cannot_flood_a_mailbox(
    alice: User, charlie: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("organizations.invitations.TO_ADDRESS_A_DAY", 2)
    assert [invite(each).status for each in (alice, charlie, alice)] == [202, 202, 429]


def test_no_mailbox_is_flooded(alice: User) -> None:
    statuses = [invite(alice).status for _ in range(6)]
    assert statuses == [202] * 5 + [429]


def test_the_cap_of_open_invitations(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("organizations.invitations.MAX_OPEN", 1)
    invite(alice, "first@example.com")
    answer = invite(alice, "second@example.com")
    assert (answer.status, answer.code) == (409, "too_many_invitations")
    # To invite the same one again takes no further place.
    assert invite(alice, "first@example.com").status == 202
    accept(mailed_token("first@example.com"))
    assert invite(alice, "second@example.com").status == 202


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"email": "nonsense", "roles": ["reader"]}, "email"),
        ({"email": "a@example.com\nBcc: b@example.com", "roles": ["reader"]}, "email"),
        ({"email": DORA}, "roles"),
        ({"email": DORA, "roles": []}, "roles"),
        ({"email": DORA, "roles": ["owner"]}, "roles.0"),
        ({"email": DORA, "roles": ["reader"], "role": "admin"}, "role"),
    ],
)
def test_an_invalid_invitation_is_refused_and_sends_no_mail(
    alice: User, body: dict[str, Any], field: str
) -> None:
    answer = signed_in(alice).post(PATH, body)
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert answer.body["errors"][0]["field"] == field
    assert not Invitation.objects.exists()
    assert not inbox.messages()


def test_an_admin_with_a_recent_proof_is_required(
    home: Organization, alice: User, bob: User
) -> None:
    dan = member(home, "dan@example.com", role="operator")
    assert invite(dan).code == invite(bob).code == "permission_denied"
    assert signed_in(dan).get(PATH).status == 200
    assert signed_in(bob).get(PATH).code == "permission_denied"
    row = Invitation.objects.get(pk=invite(alice).body["id"])
    caller = signed_in(alice)
    Session.objects.update(auth_time=timezone.now() - timedelta(hours=1))
    assert caller.post(PATH, {"email": DORA, "roles": ["admin"]}).code == "step_up_required"
    assert caller.call("DELETE", f"{PATH}/{row.pk}").code == "step_up_required"
    with_totp(alice)
    assert invite(alice).code == "step_up_required"


@pytest.mark.parametrize("how", ["command", "change of address"])
def test_an_invitation_ends_when_its_address_becomes_a_members(
    alice: User, bob: User, charlie: User, how: str
) -> None:
    token, others = invited(alice), invited(charlie)
    if how == "command":
        where = ("--organization", str(alice.organization_id), "--role", "reader")
        call_command(
            "createuser", DORA, *where, "--verified", "--no-password", stdout=io.StringIO()
        )
    else:
        caller = signed_in(with_proven_address(bob))
        assert begin_change(caller, DORA).status == 202
        assert verify(caller, mailed_code(DORA)).status == 200
    (listed,) = signed_in(alice).get(PATH).body["results"]
    assert (listed["state"], accept(token).code) == ("accepted", "invitation_gone")
    # That of another organization is none of theirs.
    assert preview(others).status == 200


def test_an_invitation_leads_into_the_account_that_a_command_prepared_later(alice: User) -> None:
    token = invited(alice, roles=["admin"])
    where = ("--organization", str(alice.organization_id), "--role", "reader")
    call_command("createuser", DORA, *where, "--no-password", stdout=io.StringIO())
    assert accept(token).status == 201
    assert User.objects.get(email=DORA).roles == ["admin"]


@pytest.mark.parametrize("action", ["demoted", "disabled", "removed"])
def test_the_invitations_of_a_removed_admin_are_revoked(
    home: Organization, alice: User, action: str
) -> None:
    """Otherwise the admin could return with an invitation that they sent to themselves."""
    eve = member(home, "eve@example.com")
    hers, others = invited(eve, "eve2@example.com", roles=["admin"]), invited(alice)
    caller, path = signed_in(with_proven_address(alice)), f"/v1/members/{eve.pk}"
    if action == "removed":
        assert caller.call("DELETE", path).status == 200
    else:
        body: dict[str, Any] = {"roles": ["reader"]} if action == "demoted" else {"disabled": True}
        assert caller.call("PATCH", path, body).status == 200
    assert accept(hers).code == "invitation_gone"
    assert accept(others).status == 201


def test_the_invitations_of_a_disabled_admin_with_derived_roles_are_revoked(
    home: Organization, alice: User
) -> None:
    eve = member(home, "eve@example.com", role="reader")
    User.objects.filter(pk=eve.pk).update(derived_roles=["admin"])
    token = invited(eve, "eve2@example.com", roles=["admin"])
    disabled = signed_in(alice).call("PATCH", f"/v1/members/{eve.pk}", {"disabled": True})
    assert disabled.status == 200
    assert accept(token).code == "invitation_gone"


@pytest.mark.parametrize("changes", [{"roles": ["reader"]}, {"disabled": True}])
def test_an_admin_who_is_demoted_or_disabled_meanwhile_invites_nobody(
    home: Organization, alice: User, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]
) -> None:
    eve = member(home, "eve@example.com")
    caller, admin = signed_in(eve), signed_in(with_proven_address(alice))

    def change_then(*_: Any, **__: Any) -> None:
        assert admin.call("PATCH", f"/v1/members/{eve.pk}", changes).status == 200

    # Between the check of the session and the invitation.
    monkeypatch.setattr("organizations.invitations.check_rate_limit", change_then)
    answer = caller.post(PATH, {"email": "eve2@example.com", "roles": ["admin"]})
    assert (answer.status, answer.code) == (401, "session_revoked")
    assert not Invitation.objects.exists()
    assert not inbox.messages("mail", "invitation")


@pytest.mark.django_db(transaction=True)
def test_one_address_invited_concurrently_has_one_open_invitation(alice: User) -> None:
    caller = signed_in(alice)
    body = {"email": DORA, "roles": ["reader"]}
    answers = at_once(*(lambda: caller.post(PATH, body) for _ in range(5)))
    assert [answer.status for answer in answers] == [202] * 5
    open_ones = Invitation.objects.filter(revoked_at=None)
    assert open_ones.count() == 1
    assert Delivery.objects.count() == 5


def test_a_development_token_invites_too(alice: User, settings: Settings) -> None:
    from accounts.tokens import development

    settings.ACCOUNTS = replace(
        settings.ACCOUNTS, dev_org_id=alice.organization_id, dev_secret="x" * 40
    )
    caller = Caller(development.token_for(alice.organization_id))
    answer = caller.post(PATH, {"email": DORA, "roles": ["reader"]})
    assert (answer.status, answer.body["invited_by"]) == (202, None)
    assert accept(mailed_token()).status == 201


def test_ended_invitations_are_deleted_after_a_month(alice: User) -> None:
    invite(alice)
    for days, kept in ((36, 1), (38, 0)):
        with time_machine.travel(timezone.now() + timedelta(days=days)):
            tasks.forget_expired(0)
        assert Invitation.objects.count() == kept
