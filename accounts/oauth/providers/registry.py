"""The providers this installation signs in with."""

from collections.abc import Mapping
from typing import Any, Final

from django.conf import settings

from accounts.oauth import redirects
from accounts.oauth.errors import ProviderNotConfigured
from accounts.oauth.models import Provider
from accounts.oauth.providers.apple import Apple
from accounts.oauth.providers.backend import Client
from accounts.oauth.providers.discord import Discord
from accounts.oauth.providers.github import GitHub
from accounts.oauth.providers.google import Google
from accounts.oauth.providers.strategy import VisitStrategy
from platform_site.lib.provider_settings import ProviderSettings

CLIENTS: Final[Mapping[str, type[Client]]] = {
    "google": Google,
    "github": GitHub,
    "discord": Discord,
    "apple": Apple,
}


def configured() -> list[dict[str, str]]:
    """Give ``name``, ``title``, ``start_url`` of each configured provider, in one order always."""
    return [
        {
            "name": provider.value,
            "title": str(provider.label),
            "start_url": redirects.start(provider.value),
        }
        for provider in Provider
        if provider.value in settings.OAUTH_PROVIDERS
    ]


def settings_of(name: str) -> ProviderSettings:
    """Give what a provider was configured with.

    Raises ProviderNotConfigured (404), also for names that are no provider's.
    """
    found: ProviderSettings | None = settings.OAUTH_PROVIDERS.get(name)
    if found is None:
        raise ProviderNotConfigured
    return found


def returns_by_post(name: str) -> bool:
    """Say whether browsers come back from a provider with a form."""
    return CLIENTS[name].returns_by_post


def client(
    name: str,
    *,
    kept: dict[str, Any],
    state: str = "",
    returned: Mapping[str, str] | None = None,
) -> Client:
    """Give the client of one visit; it changes ``kept``, which the visit's row has to keep.

    Raises ProviderNotConfigured.
    """
    provider = settings_of(name)
    kind = CLIENTS[name]
    strategy = VisitStrategy(kind.options(provider), kept=kept, state=state, returned=returned)
    return kind(provider, strategy, redirects.callback(name))
