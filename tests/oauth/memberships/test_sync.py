"""Memberships refreshed in the background: only derived roles change."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection, connections
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob
from pytest_django import Settings

from accounts.models import User
from audit.models import AuditEvent
from common.crypto import decrypt, encrypt
from common.scoping import unscoped
from environments.models import Organization
from oauth import tasks
from oauth.models import Identity
from oauth.providers.conf import RoleMapping
from tests.cast import PASSWORD, Caller, member, organization, signed_in
from tests.oauth.conftest import configure
from tests.oauth.fake_providers.discord import WEEK_S, DiscordServer
from tests.oauth.fake_providers.github import API, GitHubServer
from tests.oauth.fake_providers.server import FakeResponse, Fault
from tests.oauth.support import OAuthFlow

GUILD = "613425648685547541"
HOUR = timedelta(hours=1)


@pytest.fixture
def acme(github: GitHubServer, settings: Settings) -> Organization:
    """Return an organization with mapped teams, and a member signed in with GitHub."""
    home = organization("Acme")
    mappings = (
        RoleMapping("acme", home.pk, "reader"),
        RoleMapping("acme/platform", home.pk, "admin"),
    )
    configure(settings, "github", github, mappings=mappings)
    github.person.organizations = {"acme": "active"}
    github.person.teams = {"acme/platform": "active"}
    return home


@pytest.fixture
def dora(acme: Organization) -> Caller:
    """Return a session of a user who joined by GitHub."""
    return Caller().holding(OAuthFlow("github").sign_in())


@pytest.fixture
def club(discord: DiscordServer, settings: Settings) -> Caller:
    """Return a session of a user who joined by Discord."""
    home = organization("Club")
    configure(settings, "discord", discord, mappings=(RoleMapping(GUILD, home.pk, "reader"),))
    discord.person.guilds = {GUILD: []}
    return Caller().holding(OAuthFlow("discord").sign_in())


def roles_of(caller: Caller) -> list[str]:
    """Return the roles of a caller's session."""
    roles: list[str] = caller.get("/v1/whoami").body["roles"]
    return roles


def run(*, after: timedelta = HOUR) -> None:
    """Run the tasks that are due some time from now."""
    with time_machine.travel(timezone.now() + after):
        tasks.plan_membership_syncs(0)
        for job in ProcrastinateJob.objects.filter(task_name="oauth.tasks.sync_membership"):
            tasks.sync_membership(**job.args)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM procrastinate_jobs")


def test_a_role_removed_at_the_provider_is_gone_on_the_next_request(
    github: GitHubServer, dora: Caller
) -> None:
    assert roles_of(dora) == ["admin", "reader"]
    github.person.teams = {}
    run()
    assert roles_of(dora) == ["reader"]
    assert dora.post("/v1/environments", {"id": "x"}).code == "permission_denied"
    github.person.organizations = {}
    run(after=2 * HOUR)
    assert roles_of(dora) == []


def test_a_role_given_at_the_provider_takes_effect_without_a_sign_in(
    github: GitHubServer, dora: Caller
) -> None:
    github.person.teams = {}
    run()
    github.person.teams = {"acme/platform": "active"}
    run(after=2 * HOUR)
    assert roles_of(dora) == ["admin", "reader"]


def test_a_change_is_recorded_in_the_audit_trail(github: GitHubServer, dora: Caller) -> None:
    github.person.teams = {}
    run()
    event = AuditEvent.objects.filter(tag="sync:member:update").latest("at")
    user = User.objects.get()
    assert event.organization_id == user.organization_id
    assert event.actor_id is None
    assert event.data == {
        "member": str(user.pk),
        "email": user.email,
        "because": "github",
        "derived_roles": ["reader"],
        "before": ["admin", "reader"],
    }
    count = AuditEvent.objects.count()
    run(after=2 * HOUR)
    assert AuditEvent.objects.count() == count


def test_roles_given_by_hand_are_never_touched(github: GitHubServer, acme: Organization) -> None:
    user = member(acme, "erin@example.com", role="operator", password=PASSWORD)
    caller = signed_in(user)
    OAuthFlow("github").link(caller)
    assert roles_of(caller) == ["operator", "admin", "reader"]
    User.objects.update(roles=["operator", "reader"])
    assert roles_of(caller) == ["operator", "reader", "admin"]
    github.person.teams, github.person.organizations = {}, {}
    run()
    assert roles_of(caller) == ["operator", "reader"]
    assert User.objects.get().roles == ["operator", "reader"]


def test_unlinking_removes_the_derived_roles(github: GitHubServer, acme: Organization) -> None:
    user = member(acme, "erin@example.com", role="operator", password=PASSWORD)
    caller = signed_in(user)
    linked = OAuthFlow("github").link(caller).body["identity"]["id"]
    assert caller.call("DELETE", f"/v1/auth/identities/{linked}").status == 204
    assert roles_of(caller) == ["operator"]
    assert User.objects.get().derived_roles == []


@pytest.mark.parametrize(
    "fault",
    [
        Fault(FakeResponse(500, {})),
        Fault(FakeResponse(502, b"<html>")),
        Fault(FakeResponse(403, {"message": "API rate limit exceeded"})),
        Fault(FakeResponse(429, {}, {"Retry-After": "60"})),
        Fault(FakeResponse(200, b"<html>")),
        Fault(FakeResponse(302, {}, {"Location": "/elsewhere"})),
        Fault(is_silent=True),
    ],
)
@pytest.mark.parametrize(
    "path", [f"{API}/user", f"{API}/user/memberships/orgs/acme", f"{API}/orgs/acme/teams"]
)
def test_an_error_does_not_deny_a_membership(
    github: GitHubServer, dora: Caller, fault: Fault, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oauth.providers.http.TIMEOUT_S", 0.6)
    full = f"{path}/platform/memberships/dora" if path.endswith("teams") else path
    github.faults[full] = fault
    for hours in range(1, 4):
        run(after=hours * HOUR * 24)
    assert roles_of(dora) == ["admin", "reader"]


def test_an_organization_without_an_answer_keeps_its_role(
    github: GitHubServer, dora: Caller, settings: Settings
) -> None:
    github.restricted = {"acme"}
    home = User.objects.get().organization_id
    more = RoleMapping("beta", home, "operator")
    mappings = (*settings.OAUTH.providers["github"].mappings, more)
    configure(settings, "github", github, mappings=mappings)
    github.person.organizations = {"beta": "active"}
    run()
    assert roles_of(dora) == ["admin", "operator", "reader"]


def test_a_role_remains_for_a_day_after_the_token_was_withdrawn(
    github: GitHubServer, dora: Caller
) -> None:
    """Otherwise a user could keep the role forever by revoking the application in time."""
    github.is_revoked = True
    run(after=23 * HOUR)
    assert roles_of(dora) == ["admin", "reader"]
    run(after=25 * HOUR)
    assert roles_of(dora) == []
    assert Identity.objects.get().credentials == ""
    github.is_revoked = False
    assert roles_of(Caller().holding(OAuthFlow("github").sign_in())) == ["admin", "reader"]


def test_a_provider_token_of_another_account_gives_no_role(
    github: GitHubServer, dora: Caller
) -> None:
    github.person.id = 7
    run(after=25 * HOUR)
    assert roles_of(dora) == []


def test_tokens_of_a_disabled_user_are_no_longer_used(github: GitHubServer, dora: Caller) -> None:
    User.objects.update(is_active=False)
    before = len(github.requests)
    run()
    assert len(github.requests) == before
    identity = Identity.objects.get()
    assert (identity.credentials, identity.memberships) == ("", [])
    assert User.objects.get().derived_roles == []


@pytest.mark.parametrize("is_all", [True, False])
def test_removing_a_mapping_removes_its_roles(
    github: GitHubServer, dora: Caller, settings: Settings, is_all: bool
) -> None:
    mappings = () if is_all else settings.OAUTH.providers["github"].mappings[:1]
    configure(settings, "github", github, mappings=mappings)
    run()
    assert roles_of(dora) == ([] if is_all else ["reader"])
    assert (Identity.objects.get().credentials == "") is is_all


def test_turning_a_provider_off_removes_its_roles(dora: Caller, settings: Settings) -> None:
    settings.OAUTH = replace(settings.OAUTH, providers={})
    run()
    assert roles_of(dora) == []
    assert Identity.objects.get().credentials == ""


def test_tokens_are_stored_encrypted_and_never_shown(github: GitHubServer, dora: Caller) -> None:
    [token] = github.tokens
    identity = Identity.objects.get()
    assert token not in identity.credentials
    assert json.loads(decrypt(identity.credentials))[0] == token
    shown = dora.get("/v1/auth/identities").raw.content.decode()
    assert token not in shown
    assert identity.credentials not in shown
    assert token not in str(list(AuditEvent.objects.values()))


def test_an_identity_is_asked_about_once_an_hour(github: GitHubServer, dora: Caller) -> None:
    before = len(github.requests)
    run(after=timedelta(minutes=59))
    assert len(github.requests) == before
    run(after=timedelta(minutes=61))
    request = len(github.requests)
    assert request > before
    run(after=timedelta(minutes=90))
    assert len(github.requests) == request


# --- Discord's tokens expire after a week, and each refresh token works once


def test_an_expired_token_is_refreshed(discord: DiscordServer, club: Caller) -> None:
    for weeks in (1, 2, 3):
        run(after=timedelta(seconds=weeks * (WEEK_S + 60)))
    assert len(discord.calls("/api/oauth2/token")) == 4
    assert Identity.objects.get().confirmed_at is not None
    assert User.objects.get().derived_roles == ["reader"]
    discord.person.guilds = {}
    run(after=timedelta(weeks=5))
    assert User.objects.get().derived_roles == []


def test_a_refreshed_token_is_stored_even_if_the_next_call_fails(
    discord: DiscordServer, club: Caller
) -> None:
    member_path = f"/api/v10/users/@me/guilds/{GUILD}/member"
    discord.faults[member_path] = Fault(FakeResponse(500, {}))
    run(after=timedelta(weeks=2))
    discord.faults.clear()
    run(after=timedelta(weeks=4))
    assert User.objects.get().derived_roles == ["reader"]


@pytest.mark.parametrize(
    ("response", "is_kept"),
    [
        (FakeResponse(503, {}), True),
        (FakeResponse(500, b"<html>"), True),
        (FakeResponse(401, {"error": "invalid_client"}), True),
        (FakeResponse(400, {"error": "invalid_grant"}), False),
    ],
)
def test_a_failed_refresh_is_distinguished_from_a_refused_one(
    discord: DiscordServer, club: Caller, response: FakeResponse, is_kept: bool
) -> None:
    discord.faults["/api/oauth2/token"] = Fault(response)
    run(after=timedelta(weeks=2))
    assert User.objects.get().derived_roles == (["reader"] if is_kept else [])
    assert (Identity.objects.get().credentials != "") is is_kept


@pytest.mark.django_db(transaction=True)
def test_a_parallel_sign_in_is_not_overwritten(discord: DiscordServer, club: Caller) -> None:
    """The response to an older request must not overwrite what a newer sign-in found."""
    newer = encrypt(json.dumps(["newer", "newer", 0]))
    answer = discord.member

    @unscoped("tests arrange rows")
    def meanwhile(request: Any) -> FakeResponse:
        Identity.objects.update(credentials=newer)
        connections.close_all()
        discord.person.guilds = {}
        return answer(request)

    discord.member = meanwhile  # type: ignore[method-assign]  # of the fake provider
    identity = Identity.objects.get()
    tasks.sync_membership(str(identity.pk))
    assert Identity.objects.get().credentials == newer
    assert User.objects.get().derived_roles == ["reader"]


# --- jobs


def test_each_due_identity_is_queued_once(dora: Caller) -> None:
    with time_machine.travel(timezone.now() + HOUR):
        tasks.plan_membership_syncs(0)
        tasks.plan_membership_syncs(0)
    [job] = ProcrastinateJob.objects.filter(task_name="oauth.tasks.sync_membership")
    identity = Identity.objects.get()
    assert job.args == {"identity_id": str(identity.pk)}
    assert job.lock == job.queueing_lock == f"membership sync {identity.pk}"


def test_a_job_asks_the_provider_and_stores_the_answer(github: GitHubServer, dora: Caller) -> None:
    github.person.teams = {}
    tasks.sync_membership(str(Identity.objects.get().pk))
    assert roles_of(dora) == ["reader"]


def test_a_job_of_a_deleted_identity_does_nothing(github: GitHubServer, dora: Caller) -> None:
    key = str(Identity.objects.get().pk)
    Identity.objects.all().delete()
    before = len(github.requests)
    tasks.sync_membership(key)
    assert len(github.requests) == before
