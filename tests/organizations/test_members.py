"""Members: listed, read, changed, removed; a change applies to their next request."""

import io
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from accounts.models import Session, User
from audit.models import AuditEvent
from environments.models import Organization
from tests import inbox
from tests.cast import PASSWORD, Answer, Caller, member, session_of, signed_in, with_proven_address
from tests.twofactor.holder import with_totp
from twofactor.models import Challenge, Factor, PendingSignIn, TrustedDevice
from twofactor.trusted_devices import devices

pytestmark = pytest.mark.django_db
PATH = "/v1/members"


def patch(by: User, who: User, **changes: Any) -> Answer:
    return signed_in(by).call("PATCH", f"{PATH}/{who.pk}", changes)


def delete(by: User, who: User) -> Answer:
    return signed_in(by).call("DELETE", f"{PATH}/{who.pk}")


def test_a_member_is_shown_with_all_that_bears_on_access(alice: User, bob: User) -> None:
    session_of(bob)
    User.objects.filter(pk=bob.pk).update(labels=["sales"], email_verified_at=timezone.now())
    answer = signed_in(alice).get(f"{PATH}/{bob.pk}")
    assert answer.status == 200
    assert set(answer.body) == {
        "user_id",
        "email",
        "email_verified",
        "roles",
        "derived_roles",
        "labels",
        "disabled",
        "created_at",
        "last_login_at",
    }
    assert answer.body["user_id"] == str(bob.pk)
    assert answer.body["email"] == "bob@example.com"
    assert answer.body["roles"] == ["reader"]
    assert answer.body["labels"] == ["sales"]
    assert answer.body["email_verified"] is True
    assert answer.body["disabled"] is False
    assert answer.body["last_login_at"].endswith("Z")


def test_members_are_listed_in_pages_who_joined_first_leads(alice: User, bob: User) -> None:
    caller = signed_in(alice)
    first = caller.get(f"{PATH}?page_size=1").body
    assert [row["email"] for row in first["results"]] == ["alice@example.com"]
    second = caller.get(first["next"].removeprefix("http://testserver")).body
    assert [row["email"] for row in second["results"]] == ["bob@example.com"]
    assert second["next"] is None


@pytest.mark.parametrize(
    ("query", "emails"),
    [
        ("email=BOB@", ["bob@example.com"]),
        ("role=admin", ["alice@example.com"]),
        ("role=operator", ["dan@example.com"]),
        ("label=sales", ["bob@example.com"]),
        ("disabled=true", ["dan@example.com"]),
        ("disabled=false&email=example.com", ["alice@example.com", "bob@example.com"]),
        ("role=reader&label=none", []),
    ],
)
def test_filters_hold_together(
    home: Organization, alice: User, bob: User, query: str, emails: list[str]
) -> None:
    dan = member(home, "dan@example.com", role="reader")
    User.objects.filter(pk=dan.pk).update(derived_roles=["operator"], is_active=False)
    User.objects.filter(pk=bob.pk).update(labels=["sales"])
    User.objects.filter(pk=dan.pk).update(roles=[])
    answer = signed_in(alice).get(f"{PATH}?{query}")
    assert [row["email"] for row in answer.body["results"]] == emails


@pytest.mark.parametrize("query", ["role=owner", "disabled=perhaps", "roles=admin", "label="])
def test_an_unknown_filter_names_its_field(alice: User, query: str) -> None:
    answer = signed_in(alice).get(f"{PATH}?{query}")
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert answer.body["errors"][0]["field"] == query.partition("=")[0]


def test_members_of_another_organization_are_not_found(alice: User, charlie: User) -> None:
    answer = signed_in(alice).get(PATH)
    assert [row["email"] for row in answer.body["results"]] == ["alice@example.com"]
    for method in ("GET", "PATCH", "DELETE"):
        for key in (charlie.pk, "nonsense", "00000000-0000-7000-8000-000000000000"):
            gone = signed_in(alice).call(method, f"{PATH}/{key}", {})
            assert (gone.status, gone.code) == (404, "member_not_found")


def test_a_change_of_roles_applies_to_the_next_request(alice: User, bob: User) -> None:
    caller = signed_in(bob)
    with_proven_address(alice)
    assert caller.get(PATH).code == "permission_denied"
    answer = patch(alice, bob, roles=["reader", "admin", "admin"])
    assert (answer.status, answer.body["roles"]) == (200, ["admin", "reader"])
    assert caller.get(PATH).status == 200
    assert caller.get("/v1/whoami").body["roles"] == ["admin", "reader"]
    assert patch(alice, bob, roles=["reader"]).status == 200
    assert caller.get(PATH).code == "permission_denied"


def test_new_roles_are_mailed_to_the_member_and_audited(alice: User, bob: User) -> None:
    patch(alice, bob, roles=["operator"])
    (mail,) = inbox.messages("mail", "roles_changed")
    assert mail["to"] == "bob@example.com"
    assert mail["context"]["roles"] == "operator"
    assert mail["context"]["by"] == "alice@example.com"
    event = AuditEvent.objects.get(tag="api:member:update")
    assert event.actor_id == alice.pk
    member = {"member": str(bob.pk), "email": "bob@example.com"}
    assert event.data == {**member, "roles": ["operator"]}


def test_an_empty_change_sends_no_mail(alice: User, bob: User) -> None:
    assert patch(alice, bob, roles=["reader"], labels=[], disabled=False).status == 200
    assert patch(alice, bob).status == 200
    assert inbox.messages() == []
    assert not AuditEvent.objects.filter(tag="api:member:update").exists()


def test_labels_are_the_organizations_own_words(alice: User, bob: User) -> None:
    answer = patch(alice, bob, labels=[" sales ", "Süd", "sales"])
    assert answer.body["labels"] == ["sales", "Süd"]
    assert signed_in(bob).get("/v1/whoami").body["labels"] == ["sales", "Süd"]
    assert inbox.messages() == []


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"roles": ["owner"]}, "roles.0"),
        ({"roles": []}, "roles"),
        ({"roles": "admin"}, "roles"),
        ({"roles": None}, "roles"),
        ({"labels": ["x" * 101]}, "labels.0"),
        ({"labels": ["\0"]}, "labels.0"),
        ({"labels": [str(n) for n in range(51)]}, "labels"),
        ({"disabled": "perhaps"}, "disabled"),
        ({"email": "new@example.com"}, "email"),
    ],
)
def test_a_wrong_change_is_named_and_changes_nothing(
    alice: User, bob: User, changes: dict[str, Any], field: str
) -> None:
    answer = patch(alice, bob, **changes)
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert answer.body["errors"][0]["field"] == field
    after = User.objects.get(pk=bob.pk)
    assert (after.roles, after.labels, after.is_active) == (["reader"], [], True)


def test_a_member_with_derived_roles_needs_no_assigned_ones(alice: User, bob: User) -> None:
    User.objects.filter(pk=bob.pk).update(derived_roles=["operator"])
    answer = patch(alice, bob, roles=[])
    assert (answer.body["roles"], answer.body["derived_roles"]) == ([], ["operator"])
    assert signed_in(bob).get("/v1/whoami").body["roles"] == ["operator"]


def test_disabling_ends_everything_immediately_and_permanently(
    home: Organization, alice: User
) -> None:
    bob = member(home, "bob@example.com", role="reader", password=PASSWORD)
    caller = signed_in(bob)
    devices.trust(bob, "Bob's phone", now=timezone.now())
    assert patch(alice, bob, disabled=True).body["disabled"] is True
    assert caller.get("/v1/whoami").code == "session_revoked"
    assert caller.refresh().code == "session_revoked"
    assert not TrustedDevice.objects.exists()
    login = {"email": bob.email, "password": PASSWORD}
    assert Caller().post("/v1/auth/login", login).code == "invalid_credentials"
    # Opened again, what was ended stays ended.
    assert patch(alice, bob, disabled=False).body["disabled"] is False
    assert caller.get("/v1/whoami").code == "session_revoked"
    assert inbox.notices_to(bob.email) == ["account_disabled", "account_enabled"]
    assert Caller().post("/v1/auth/login", login).status == 200


def test_a_pending_sign_in_does_not_outlive_disabling(home: Organization, alice: User) -> None:
    bob = member(home, "bob@example.com", role="reader", password=PASSWORD)
    with_totp(bob)
    login = {"email": bob.email, "password": PASSWORD}
    pending = Caller().post("/v1/auth/login", login).body["mfa_token"]
    patch(alice, bob, disabled=True)
    patch(alice, bob, disabled=False)
    assert Caller(pending).get("/v1/auth/2fa/challenge").status == 401


def test_removal_ends_everything_immediately(alice: User, bob: User) -> None:
    with_totp(bob)
    caller = signed_in(bob)
    devices.trust(bob, "Bob's phone", now=timezone.now())
    assert caller.get("/v1/auth/2fa/challenge").status == 200
    assert delete(alice, bob).status == 200
    assert caller.get("/v1/whoami").code == "session_revoked"
    assert caller.refresh().code == "session_revoked"
    for model in (User, Session, Factor, Challenge, PendingSignIn, TrustedDevice):
        rows = model.objects.filter(**{"pk" if model is User else "user_id": bob.pk})
        assert not rows.exists(), model
    assert delete(alice, bob).code == "member_not_found"
    assert inbox.notices_to(bob.email)[-1] == "account_removed"
    event = AuditEvent.objects.get(tag="api:member:delete")
    assert event.data == {"member": str(bob.pk), "email": "bob@example.com"}


def test_the_address_of_a_removed_member_is_free(alice: User, bob: User) -> None:
    delete(alice, bob)
    body = {"email": "bob@example.com", "password": PASSWORD}
    answer = Caller().post("/v1/auth/signup", body)
    assert answer.status == 201
    assert Caller().holding(answer).get("/v1/whoami").body["org_id"] != alice.organization_id


def test_what_a_removed_member_did_stays_in_the_trail(alice: User, bob: User) -> None:
    AuditEvent.objects.create(tag="t:t:t", actor_id=bob.pk, actor=bob.email)
    delete(alice, bob)
    assert AuditEvent.objects.filter(actor_id=bob.pk, actor="bob@example.com").exists()


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_a_recent_proof_is_required(alice: User, bob: User, method: str) -> None:
    caller = signed_in(alice)
    Session.objects.update(auth_time=timezone.now() - timedelta(minutes=16))
    answer = caller.call(method, f"{PATH}/{bob.pk}", {})
    assert (answer.status, answer.code) == (403, "step_up_required")
    assert User.objects.filter(pk=bob.pk).exists()


def test_an_account_with_a_factor_requires_that_factor(alice: User, bob: User) -> None:
    with_totp(alice)
    assert patch(alice, bob, roles=["admin"]).code == "step_up_required"
    assert delete(alice, bob).code == "step_up_required"


def test_an_operator_reads_members_and_changes_none(home: Organization, alice: User) -> None:
    dan = member(home, "dan@example.com", role="operator")
    assert signed_in(dan).get(PATH).status == 200
    assert signed_in(dan).get(f"{PATH}/{alice.pk}").status == 200
    assert patch(dan, dan, roles=["admin"]).code == "permission_denied"
    assert delete(dan, alice).code == "permission_denied"


@pytest.mark.parametrize("role", ["operator", "reader"])
def test_a_member_of_any_role_leaves_by_itself(home: Organization, role: str) -> None:
    dan = member(home, "dan@example.com", role=role, password=PASSWORD)
    caller = signed_in(dan)
    assert caller.get(f"{PATH}/{dan.pk}").body["email"] == dan.email
    before = caller.get(f"{PATH}/{dan.pk}/created")
    assert before.body == {"ends": [], "stays": [], "is_complete": True}
    answer = caller.call("DELETE", f"{PATH}/{dan.pk}")
    assert (answer.status, answer.body["created"]) == (200, before.body)
    assert caller.get("/v1/whoami").code == "session_revoked"
    assert caller.refresh().code == "session_revoked"
    (mail,) = inbox.messages("mail", "account_removed")
    assert (mail["to"], mail["context"]["by"]) == (dan.email, "")
    event = AuditEvent.objects.get(tag="api:member:delete")
    assert (event.actor_id, event.data["member"]) == (dan.pk, str(dan.pk))
    body = {"email": dan.email, "password": PASSWORD}
    joined = Caller().post("/v1/auth/signup", body)
    assert Caller().holding(joined).get("/v1/whoami").body["org_id"] != home.pk


def test_leaving_takes_a_recent_proof_and_one_is_asked_for_a_factor(bob: User) -> None:
    caller = signed_in(bob)
    Session.objects.update(auth_time=timezone.now() - timedelta(minutes=16))
    assert caller.call("DELETE", f"{PATH}/{bob.pk}").code == "step_up_required"
    with_totp(bob)
    assert signed_in(bob).call("DELETE", f"{PATH}/{bob.pk}").code == "step_up_required"
    assert User.objects.filter(pk=bob.pk).exists()


def test_being_oneself_opens_nothing_else(alice: User, bob: User) -> None:
    caller = signed_in(bob)
    for method, path in (
        ("DELETE", f"{PATH}/{alice.pk}"),
        ("DELETE", f"{PATH}/{bob.pk.hex}"),
        ("GET", f"{PATH}/{alice.pk}/created"),
        ("GET", f"{PATH}/{alice.pk}"),
        ("PATCH", f"{PATH}/{bob.pk}"),
        ("POST", f"{PATH}/{bob.pk}/factors/reset"),
    ):
        answer = caller.call(method, path, None if method in {"GET", "DELETE"} else {})
        assert (answer.status, answer.code) == (403, "permission_denied"), path
    assert User.objects.filter(pk=bob.pk).exists()


@pytest.fixture
def dora(alice: User) -> User:
    """Return a second admin, who has created an API key."""
    with_proven_address(alice)
    dora = with_proven_address(member(alice.organization, "dora@example.com"))
    made = signed_in(dora).post("/v1/api-keys", {"name": "ci", "role": "reader"})
    assert made.status == 201
    return dora


def listed_in_mail() -> Any:
    return inbox.messages("mail", "roles_changed")[-1]["context"]["created"]


def test_an_admin_left_with_derived_roles_only_sees_what_has_ended(alice: User, dora: User) -> None:
    User.objects.filter(pk=dora.pk).update(derived_roles=["reader"])
    answer = patch(alice, dora, roles=[])
    assert [each["name"] for each in answer.body["created"]["ends"]] == ["ci"]
    assert "API key ci" in listed_in_mail()


@pytest.mark.parametrize(
    ("roles", "derived"), [(["admin", "operator"], []), (["operator"], ["admin"])]
)
def test_a_change_that_leaves_an_admin_says_nothing_of_an_end(
    alice: User, dora: User, roles: list[str], derived: list[str]
) -> None:
    User.objects.filter(pk=dora.pk).update(derived_roles=derived)
    answer = patch(alice, dora, roles=roles)
    assert (answer.status, answer.body["created"]) == (200, None)
    assert listed_in_mail() == ""


def test_an_operators_demotion_lists_what_has_ended_in_the_mail(dora: User) -> None:
    call_command("setroles", dora.email, "reader", stdout=io.StringIO())
    assert "API key ci" in listed_in_mail()
