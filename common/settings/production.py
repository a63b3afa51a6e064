"""Detect production from environment variables."""

from collections.abc import Mapping
from typing import Final

TRUE: Final = frozenset({"1", "true", "yes", "on"})

# Set by hosting platforms, so that a forgotten PRODUCTION=true does not weaken security.
HOSTING_MARKERS: Final = (
    "AWS_EXECUTION_ENV",
    "DYNO",
    "ECS_CONTAINER_METADATA_URI_V4",
    "FLY_APP_NAME",
    "FUNCTION_TARGET",
    "GAE_ENV",
    "HEROKU_APP_NAME",
    "KUBERNETES_SERVICE_HOST",
    "K_SERVICE",
    "RAILWAY_ENVIRONMENT",
    "RENDER",
    "VERCEL",
    "WEBSITE_INSTANCE_ID",
)


def is_production(variables: Mapping[str, str]) -> bool:
    """True if these variables mean production, or may mean it."""
    if variables.get("PRODUCTION", "").strip().lower() in TRUE:
        return True
    for name in ("NODE_ENV", "DJANGO_ENV", "ENVIRONMENT"):
        if variables.get(name, "").strip().lower() in {"production", "prod"}:
            return True
    return any(variables.get(name, "").strip() for name in HOSTING_MARKERS)
