"""Whether this process runs in production, told by the environment alone."""

from collections.abc import Mapping
from typing import Final

TRUE: Final = frozenset({"1", "true", "yes", "on"})

# Set by the platforms themselves, so that a forgotten PRODUCTION=true does not open the door.
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
    """Say whether these variables mean production; when in doubt, they do."""
    if variables.get("PRODUCTION", "").strip().lower() in TRUE:
        return True
    for name in ("NODE_ENV", "DJANGO_ENV", "ENVIRONMENT"):
        if variables.get(name, "").strip().lower() in {"production", "prod"}:
            return True
    return any(variables.get(name, "").strip() for name in HOSTING_MARKERS)
