"""The providers that this installation is configured for."""

from collections.abc import Mapping
from typing import Any, Final

from django.conf import settings

from oauth.errors import ProviderNotConfigured
from oauth.flow import redirects
from oauth.models import Provider
from oauth.providers.apple import Apple
from oauth.providers.backend import ProviderBackend
from oauth.providers.conf import ProviderSettings
from oauth.providers.discord import Discord
from oauth.providers.github import GitHub
from oauth.providers.google import Google
from oauth.providers.social_core import TransactionStrategy

BACKENDS: Final[Mapping[str, type[ProviderBackend]]] = {
    "google": Google,
    "github": GitHub,
    "discord": Discord,
    "apple": Apple,
}


def configured() -> list[dict[str, str]]:
    """Return ``name``, ``title``, ``start_url`` of each configured provider, in a fixed order."""
    return [
        {
            "name": provider.value,
            "title": str(provider.label),
            "start_url": redirects.start(provider.value),
        }
        for provider in Provider
        if provider.value in settings.OAUTH.providers
    ]


def settings_of(name: str) -> ProviderSettings:
    """Return a provider's configuration.

    Raises ProviderNotConfigured (404), also for an unknown name.
    """
    found: ProviderSettings | None = settings.OAUTH.providers.get(name)
    if found is None:
        raise ProviderNotConfigured
    return found


def uses_form_post(name: str) -> bool:
    """Return True if the provider's callback is a form sent from its page."""
    return BACKENDS[name].uses_form_post


def backend(
    name: str,
    *,
    session: dict[str, Any],
    state: str = "",
    callback: Mapping[str, str] | None = None,
) -> ProviderBackend:
    """Return the backend of one transaction; it changes ``session``, which the caller stores.

    Raises ProviderNotConfigured.
    """
    provider = settings_of(name)
    cls = BACKENDS[name]
    strategy = TransactionStrategy(
        cls.social_settings(provider), session=session, state=state, callback=callback
    )
    return cls(provider, strategy, redirects.callback(name))
