"""Discord: the verified address, servers and the roles in them."""

from typing import Any

import pytest
from pytest_django import Settings

from accounts.models import User
from environments.models import Organization
from oauth.models import Identity
from oauth.providers.conf import RoleMapping
from tests.cast import Caller, organization
from tests.oauth.conftest import configure
from tests.oauth.fake_providers.discord import API, DiscordServer
from tests.oauth.fake_providers.server import FakeResponse, Fault
from tests.oauth.support import OAuthFlow

GUILD = "613425648685547541"
MODERATORS = "936746847437983786"
MEMBER = f"{API}/guilds/{GUILD}/member"


def whoami() -> dict[str, Any]:
    """Sign in with Discord; return whoami."""
    body: dict[str, Any] = Caller().holding(OAuthFlow("discord").sign_in()).get("/v1/whoami").body
    return body


@pytest.fixture
def club(discord: DiscordServer, settings: Settings) -> Organization:
    """Return an organization that a server and one of its roles are mapped to."""
    home = organization("Club")
    mappings = (
        RoleMapping(GUILD, home.pk, "reader"),
        RoleMapping(f"{GUILD}/{MODERATORS}", home.pk, "operator"),
    )
    configure(settings, "discord", discord, mappings=mappings)
    return home


@pytest.mark.parametrize(
    ("email", "verified", "code"),
    [
        (None, False, "email_missing"),
        ("", True, "email_missing"),
        ("dora@example.com", False, "email_unverified"),
        ("dora@example.com", "yes", "email_unverified"),
    ],
)
def test_a_new_user_needs_a_verified_address(
    discord: DiscordServer, email: str | None, verified: Any, code: str
) -> None:
    discord.person.email, discord.person.verified = email, verified
    assert OAuthFlow("discord").error() == code
    assert not User.objects.exists()


@pytest.mark.parametrize("key", [None, 80351110224678912, "", "dora", "8035/../me"])
def test_a_malformed_user_id_is_refused(discord: DiscordServer, key: object) -> None:
    discord.faults[API] = Fault(FakeResponse(body={"id": key, "username": "dora"}))
    assert OAuthFlow("discord").error() == "provider_error"


def test_servers_are_requested_only_if_a_mapping_needs_them(discord: DiscordServer) -> None:
    whoami()
    assert discord.calls("/oauth2/authorize")[0].query["scope"] == "identify email"
    assert not discord.calls(MEMBER)
    assert Identity.objects.get().credentials == ""


def test_a_member_of_a_mapped_server_joins_its_organization(
    discord: DiscordServer, club: Organization
) -> None:
    discord.person.guilds = {GUILD: []}
    who = whoami()
    assert (who["org_id"], who["roles"]) == (club.pk, ["reader"])
    scope = discord.calls("/oauth2/authorize")[0].query["scope"]
    assert set(scope.split()) == {"identify", "email", "guilds.members.read"}


def test_a_role_in_the_server_gives_its_role_here(
    discord: DiscordServer, club: Organization
) -> None:
    discord.person.guilds = {GUILD: [MODERATORS, "1"]}
    assert whoami()["roles"] == ["operator", "reader"]
    # One call per server, however many of its roles are mapped.
    assert len(discord.calls(MEMBER)) == 1


def test_a_role_removed_at_discord_removes_the_derived_role(
    discord: DiscordServer, club: Organization
) -> None:
    discord.person.guilds = {GUILD: [MODERATORS]}
    whoami()
    discord.person.guilds = {GUILD: []}
    assert whoami()["roles"] == ["reader"]
    discord.person.guilds = {}
    assert whoami()["roles"] == []


def test_a_user_who_has_not_accepted_the_rules_is_not_a_member(
    discord: DiscordServer, club: Organization
) -> None:
    discord.person.guilds, discord.person.pending = {GUILD: [MODERATORS]}, True
    assert whoami()["org_id"] != club.pk


@pytest.mark.parametrize(
    "response",
    [
        FakeResponse(500, {}),
        FakeResponse(403, {"message": "Missing Access", "code": 50001}),
        FakeResponse(429, {"retry_after": 1.0}, {"Retry-After": "1"}),
        FakeResponse(200, {"roles": "all"}),
        FakeResponse(200, b"<html>"),
    ],
)
def test_an_outage_removes_no_role_and_refuses_a_new_user(
    discord: DiscordServer, club: Organization, response: FakeResponse
) -> None:
    discord.person.guilds = {GUILD: [MODERATORS]}
    discord.faults[MEMBER] = Fault(response)
    assert OAuthFlow("discord").sign_in().code == "provider_unavailable"
    assert not User.objects.exists()
    discord.faults.clear()
    whoami()
    discord.faults[MEMBER] = Fault(response)
    assert whoami()["roles"] == ["operator", "reader"]


def test_a_refused_new_token_is_a_provider_error(
    discord: DiscordServer, club: Organization
) -> None:
    discord.faults[MEMBER] = Fault(FakeResponse(401, {}))
    assert OAuthFlow("discord").error() == "provider_error"
