"""Fake providers on loopback, and a platform that is configured for them."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from pytest_django import Settings
from social_core.backends.open_id_connect import OpenIdConnectAuth

from oauth.providers.conf import ProviderSettings
from tests.oauth.fake_providers import keys
from tests.oauth.fake_providers.apple import KEY_ID, TEAM_ID, AppleServer
from tests.oauth.fake_providers.discord import DiscordServer
from tests.oauth.fake_providers.github import GitHubServer
from tests.oauth.fake_providers.google import GoogleServer
from tests.oauth.fake_providers.server import CLIENT_ID, CLIENT_SECRET, ProviderServer
from tests.oauth.support import APP

BASE = "https://zonal.example.com"


@pytest.fixture(autouse=True)
def platform(settings: Settings) -> None:
    """Configure an allowed redirect URL, and no provider yet."""
    # Cached by URL, and a fake provider may get the port of an earlier one.
    OpenIdConnectAuth.get_jwks_keys_for_uri.invalidate()
    settings.OAUTH = replace(settings.OAUTH, redirect_base_url=BASE, redirects=(APP,), providers={})


def configure(settings: Settings, name: str, server: ProviderServer, **options: object) -> None:
    """Configure a provider."""
    server.redirect_uris.add(f"{BASE}/v1/auth/oauth/{name}/callback")
    given = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET, "base_url": server.url}
    provider = ProviderSettings(**(given | options))  # type: ignore[arg-type]  # by name
    settings.OAUTH = replace(settings.OAUTH, providers=settings.OAUTH.providers | {name: provider})


@pytest.fixture
def google(settings: Settings, db: None) -> Iterator[GoogleServer]:
    """Return Google, configured."""
    with GoogleServer() as server:
        configure(settings, "google", server)
        yield server


@pytest.fixture
def github(settings: Settings, db: None) -> Iterator[GitHubServer]:
    """Return GitHub, configured without mappings."""
    with GitHubServer() as server:
        configure(settings, "github", server)
        yield server


@pytest.fixture
def discord(settings: Settings, db: None) -> Iterator[DiscordServer]:
    """Return Discord, configured without mappings."""
    with DiscordServer() as server:
        configure(settings, "discord", server)
        yield server


@pytest.fixture
def apple(settings: Settings, db: None) -> Iterator[AppleServer]:
    """Return Apple, configured with a key."""
    with AppleServer() as server:
        key = {"team_id": TEAM_ID, "key_id": KEY_ID, "private_key": keys.ec_pem("apple")}
        configure(settings, "apple", server, client_secret="", **key)
        yield server
