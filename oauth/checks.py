"""Deployment checks of external sign-in."""

from typing import Any

from django.conf import settings
from django.core import checks


@checks.register(checks.Tags.security, deploy=True)
def production_providers(**_options: Any) -> list[checks.CheckMessage]:
    """Refuse providers whose tokens would be sent unencrypted."""
    messages: list[checks.CheckMessage] = [
        checks.Error(f"{name.upper()}_BASE_URL is not https.", id="zonal.E018")
        for name, provider in settings.OAUTH.providers.items()
        if provider.base_url.startswith("http:")
    ]
    if settings.OAUTH.providers and settings.OAUTH.redirect_base_url.startswith("http:"):
        messages.append(checks.Error("OAUTH_REDIRECT_BASE_URL is not https.", id="zonal.E019"))
    return messages
