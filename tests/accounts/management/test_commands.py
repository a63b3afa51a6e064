"""Operators make organizations and users, set roles and end sessions, by hand and from scripts."""

import io
import json

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, OperationalError, connection
from django.utils import timezone

from accounts.models import User
from accounts.signin import signup
from audit.models import AuditEvent
from environments.models import Environment, Organization
from organizations.models import Invitation
from tests import inbox
from tests.accounts.api_keys.support import made
from tests.cast import PASSWORD, Caller, signed_in
from tests.commands import facts, help_of, misused, refused, run
from tests.organizations.support import accept, mailed_token
from twofactor.models import TrustedDevice
from twofactor.trusted_devices import devices

pytestmark = pytest.mark.django_db
COMMANDS = [
    "createorganization",
    "createuser",
    "setroles",
    "endsessions",
    "rotatekeys",
    "issuetoken",
    "importmembers",
    "exportaudit",
    "pruneexpired",
    "createstaff",
    "changepassword",
    "apikeys",
]


def typed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text + "\n"))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_describes_the_effects_and_exit_codes(name: str) -> None:
    text = help_of(name)
    assert "Exit status: 0 done; 1 refused, and nothing was changed; 2 called wrongly;" in text
    assert "3 the database does not answer or takes no writes, so try again;" in text
    assert "--json" in text
    assert "None" not in text


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("createorganization", []),
        ("createuser", ["dora@example.com"]),
        ("createuser", ["dora@example.com", "--organization", "1", "--role", "owner"]),
        ("createuser", ["d@example.com", "--organization", "x", "--role", "admin"]),
        ("setroles", ["dora@example.com"]),
        ("setroles", ["dora@example.com", "owner"]),
        ("endsessions", []),
        ("endsessions", ["dora@example.com", "--everybody"]),
        ("importmembers", ["file.csv"]),
        ("apikeys", ["--key", "x"]),
    ],
)
def test_a_wrong_call_ends_with_2(
    name: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert misused(name, *arguments) == 2
    assert "usage:" in capsys.readouterr().err


def test_an_unreachable_database_exits_with_3_and_its_own_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def away(email: str) -> None:
        raise OperationalError("connection to 10.0.0.7 failed\nas postgres://u:secret@10.0.0.7/z")

    monkeypatch.setattr("accounts.management.user_arguments.user", away)
    out = io.StringIO()
    with pytest.raises(CommandError) as caught:
        call_command("setroles", "alice@example.com", "reader", "--json", stdout=out)
    assert caught.value.returncode == 3
    assert json.loads(out.getvalue())["error"]["code"] == "database_unavailable"
    assert "connection to 10.0.0.7 failed" in str(caught.value)
    assert "secret" not in f"{caught.value}{out.getvalue()}"


def test_a_statement_that_the_database_refuses_does_not_mean_that_it_is_unreachable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(email: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 / 0")

    monkeypatch.setattr("accounts.management.user_arguments.user", broken)
    with pytest.raises(DatabaseError):
        call_command("setroles", "alice@example.com", "reader")


def test_an_organization_comes_with_its_environments() -> None:
    made = facts("createorganization", " Lakes & Sons ")
    assert made["name"] == "Lakes & Sons"
    assert made["admin"] is None
    slugs = Environment.objects.filter(organization_id=made["org_id"]).values_list("slug")
    assert sorted(slug for (slug,) in slugs) == sorted(made["environments"]) == ["live", "sandbox"]
    assert AuditEvent.objects.get().tag == "cli:organization:create"
    assert f"Organization {made['org_id'] + 1}" in run("createorganization", "Another")


def test_the_first_admin_signs_in_by_a_mailed_link() -> None:
    made = facts("createorganization", "Lakes", "--admin", "dora@EXAMPLE.com")
    assert made["admin"] == "dora@example.com"
    admin = User.objects.get()
    assert (admin.roles, admin.has_usable_password()) == (["admin"], False)
    answer = accept(mailed_token("dora@example.com"))
    assert answer.status == 201
    who = Caller().holding(answer).get("/v1/whoami").body
    assert (who["org_id"], who["user_id"]) == (made["org_id"], str(admin.pk))
    assert who["email_verified"] is True
    assert User.objects.count() == 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([" "], "name_invalid"),
        (["x" * 201], "name_invalid"),
        (["Lakes", "--admin", "nonsense"], "email_invalid"),
        (["Lakes", "--admin", ""], "email_invalid"),
        (["Lakes", "--admin", f"{'x' * 250}@example.com"], "email_invalid"),
        (["Lakes", "--admin", "ALICE@example.com"], "email_taken"),
        (["Lakes", "--admin", "alice@l\u0131ve.example"], "email_invalid"),
    ],
)
def test_a_refused_organization_is_not_created(
    alice: User, arguments: list[str], code: str
) -> None:
    signup.add_user(alice.organization, "alice@live.example", "!", roles=["reader"])
    assert refused("createorganization", *arguments)[1]["code"] == code
    assert Organization.objects.count() == 1
    assert not inbox.messages()


def test_a_user_gets_the_password_that_is_typed(
    home: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, PASSWORD)
    made = facts(
        "createuser",
        "dora@example.com",
        "--organization",
        str(home.pk),
        "--role",
        "reader",
        "--role",
        "operator",
        "--label",
        "sales",
        "--verified",
    )
    assert made["roles"] == ["operator", "reader"]
    assert made["labels"] == ["sales"]
    assert made["invited"] is False
    body = {"email": "dora@example.com", "password": PASSWORD}
    answer = Caller().post("/v1/auth/login", body)
    assert (answer.status, answer.body["email_verified"]) == (200, True)
    assert PASSWORD not in str(AuditEvent.objects.get(tag="cli:member:create").data)
    assert not inbox.messages()


def test_an_invited_user_sets_the_password(home: Organization) -> None:
    arguments = ["dora@example.com", "--organization", str(home.pk), "--role", "reader", "--invite"]
    assert facts("createuser", *arguments)["invited"] is True
    token = mailed_token("dora@example.com")
    assert accept(token).status == 201
    assert accept(token).code == "invitation_gone"
    assert User.objects.filter(email="dora@example.com").count() == 1


def test_an_account_that_was_taken_into_use_is_not_given_away_by_its_link(
    home: Organization,
) -> None:
    arguments = ["dora@example.com", "--organization", str(home.pk), "--role", "reader", "--invite"]
    run("createuser", *arguments)
    User.objects.filter(email="dora@example.com").update(email_verified_at=timezone.now())
    assert accept(mailed_token("dora@example.com")).code == "invitation_gone"
    assert Invitation.objects.get().accepted_at is None


@pytest.mark.parametrize(
    ("email", "more", "password", "code"),
    [
        ("nonsense", [], PASSWORD, "email_invalid"),
        ("ALICE@example.com", [], PASSWORD, "email_taken"),
        ("dora@example.com", [], "short", "invalid_request"),
        ("dora@example.com", ["--invite", "--verified"], "", "invite_verifies"),
        ("dora@example.com", ["--organization", "999999"], PASSWORD, "organization_not_found"),
        (f"{'x' * 250}@example.com", [], PASSWORD, "email_invalid"),
        ("dora@example.com", ["--label", "x" * 101], PASSWORD, "label_invalid"),
        ("dora@example.com", ["--label", " "], PASSWORD, "label_invalid"),
    ],
)
def test_a_refused_user_is_not_created(
    alice: User,
    monkeypatch: pytest.MonkeyPatch,
    email: str,
    more: list[str],
    password: str,
    code: str,
) -> None:
    typed(monkeypatch, password)
    where = ["--organization", str(alice.organization_id), "--role", "reader"]
    said, error = refused("createuser", email, *where, *more)
    assert error["code"] == code
    if code == "invalid_request":
        assert said == "password: At least 8 characters."
    assert User.objects.count() == 1
    assert not inbox.messages()


def test_roles_hold_on_the_next_request(alice: User, bob: User) -> None:
    caller = signed_in(bob)
    made = facts("setroles", "BOB@example.com", "operator", "reader")
    assert (made["roles"], made["changed"]) == (["operator", "reader"], True)
    assert caller.get("/v1/members").status == 200
    assert facts("setroles", "bob@example.com", "reader", "operator")["changed"] is False
    assert inbox.notices_to("bob@example.com") == ["roles_changed"]
    assert AuditEvent.objects.filter(tag="cli:member:update").count() == 1


def test_the_last_admin_stays_one(alice: User) -> None:
    message, error = refused("setroles", "alice@example.com", "reader")
    assert error["code"] == "last_admin"
    assert "needs an admin" in message
    assert refused("setroles", "nobody@example.com", "reader")[1]["code"] == "user_not_found"
    assert User.objects.get().roles == ["admin"]


def test_sessions_of_one_account_end(alice: User, bob: User) -> None:
    mine, other = [signed_in(alice), signed_in(alice)], signed_in(bob)
    devices.trust(alice, "phone", now=timezone.now())
    counted = facts("endsessions", "alice@example.com", "--dry-run")
    assert counted == {"sessions": 2, "users": 1, "dry_run": True}
    assert facts("endsessions", "alice@example.com") == {"sessions": 2, "users": 1}
    assert {caller.get("/v1/whoami").code for caller in mine} == {"session_revoked"}
    assert other.get("/v1/whoami").status == 200
    assert TrustedDevice.objects.exists()
    assert facts("endsessions", "alice@example.com", "--devices") == {"sessions": 0, "users": 0}
    assert not TrustedDevice.objects.exists()
    assert AuditEvent.objects.filter(tag="cli:session:delete").count() == 2


def test_sessions_of_an_organization_and_of_everybody_end(
    alice: User, bob: User, charlie: User
) -> None:
    callers = [signed_in(user) for user in (alice, bob, charlie)]
    home = str(alice.organization_id)
    assert facts("endsessions", "--organization", home) == {"sessions": 2, "users": 2}
    assert callers[2].get("/v1/whoami").status == 200
    assert run("endsessions", "--everybody") == "1 sessions of 1 accounts ended.\n"
    assert callers[2].get("/v1/whoami").code == "session_revoked"
    assert refused("endsessions", "nobody@example.com")[1]["code"] == "user_not_found"
    error = refused("endsessions", "--organization", "999999")[1]
    assert error["code"] == "organization_not_found"


def test_an_address_that_is_empty_is_not_everybody(alice: User) -> None:
    """As a script's unset variable makes it."""
    caller = signed_in(alice)
    assert refused("endsessions", "")[1]["code"] == "user_not_found"
    assert caller.get("/v1/whoami").status == 200


def test_api_keys_are_shown_without_their_text_and_revoked(alice: User, charlie: User) -> None:
    mine, theirs = made(alice), made(charlie)
    shown = run("apikeys") + str(facts("apikeys", "--organization", str(alice.organization_id)))
    assert mine["id"] in shown
    assert mine["key"][8:-6] not in shown
    assert [row["id"] for row in facts("apikeys", "--creator", charlie.email)["keys"]] == [
        theirs["id"]
    ]
    assert facts("apikeys", "--key", mine["id"], "--revoke") == {"revoked": 1}
    assert facts("apikeys", "--key", mine["id"], "--revoke") == {"revoked": 0}
    assert Caller(mine["key"]).get("/v1/whoami").code == "api_key_invalid"
    event = AuditEvent.objects.get(tag="cli:api_key:revoke")
    assert (event.organization_id, event.data["key"]) == (alice.organization_id, mine["id"])
    assert facts("apikeys", "--key", mine["id"])["keys"][0]["state"] == "revoked"
    assert Caller(theirs["key"]).get("/v1/whoami").status == 200
    assert facts("apikeys", "--revoke", "--everybody") == {"revoked": 1}


def test_revoking_api_keys_without_a_filter_is_refused(alice: User) -> None:
    made(alice)
    assert refused("apikeys", "--revoke")[1]["code"] == "nothing_named"
    assert refused("apikeys", "--creator", "", "--revoke")[1]["code"] == "user_not_found"
    nobodys = "00000000-0000-7000-8000-000000000000"
    assert refused("apikeys", "--key", nobodys)[1]["code"] == "api_key_not_found"
    assert facts("apikeys")["keys"][0]["state"] == "active"


def test_a_dry_run_shows_the_result_and_keeps_nothing(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, PASSWORD)
    home = str(alice.organization_id)
    dora = ("dora@example.com", "--organization", home, "--role", "reader")
    shown = facts("createuser", *dora, "--dry-run")
    assert (shown["email"], shown["dry_run"]) == ("dora@example.com", True)
    assert facts("createuser", *dora, "--invite", "--dry-run")["invited"] is True
    assert facts("createorganization", "Lakes", "--admin", "dora@example.com", "--dry-run")
    assert (
        refused("setroles", "alice@example.com", "reader", "--dry-run")[1]["code"] == "last_admin"
    )
    going = facts("deleteorganization", home, "--name", "Alice's", "--at-once", "--dry-run")
    assert (going["dry_run"], going["deletion_due_at"] is None) == (True, False)
    said = run("setquota", home, "--environments", "1", "--dry-run")
    assert "\n--environments   1\n--statements     default\n" in said
    assert said.endswith("A dry run: nothing was changed.\n")
    said = run("createorganization", "Lakes", "--admin", "dora@example.com", "--dry-run")
    assert said.startswith("Lakes would be created. A link would be mailed to dora@example.com.\n")
    said = run("createuser", *dora, "--invite", "--dry-run")
    assert "would be a member" in said
    assert "The link would be mailed." in said

    assert User.objects.count() == Organization.objects.count() == 1
    assert Organization.objects.get().deletion_due_at is None
    assert facts("setquota", home)["environments"] != 1
    assert not AuditEvent.objects.filter(tag__startswith="cli:").exists()
    assert not inbox.messages()
