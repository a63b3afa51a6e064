"""System checks of the edge cache."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register


@register(Tags.security, deploy=True)
def check_secret(
    app_configs: Sequence[AppConfig] | None = None, **options: Any
) -> list[CheckMessage]:
    """Require the secret that the platform and the brain share."""
    if settings.CACHE.secret or not settings.CACHE.is_enabled:
        return []
    return [
        Error(
            "ZCACHE_BRAIN_SECRET is not set: the brain would refuse every call.",
            hint="Set it here and for the brain, or turn the cache off with ZCACHE_ENABLED=false.",
            id="edgecache.E001",
        )
    ]
