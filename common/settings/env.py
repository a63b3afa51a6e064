"""The environment that settings are read from, and whether it means production.

A value comes from the variable itself, else from the file that ``NAME_FILE`` names (for secrets
mounted as files), else from ``$ZDATA_DIR/runtime.env`` (written by ``up``). An empty value
counts as unset.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from common.machine.folders import data_dir_from
from common.settings.runtime_env import load_runtime_env

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


class SettingError(SystemExit):
    """A setting with an invalid value: ends the process with the sentence, without a traceback."""

    def __init__(self, name: str, sentence: str) -> None:
        super().__init__(f"zonal: {name} {sentence}")


@dataclass(frozen=True)
class Env:
    """Environment variables, and the fallback for unset ones."""

    variables: Mapping[str, str] = field(repr=False)
    fallback: Mapping[str, str] = field(default_factory=dict, repr=False)

    def raw(self, name: str) -> str:
        """Return a variable's text, '' when it is unset.

        Raises SettingError for a file that cannot be read.
        """
        value = self.variables.get(name, "").strip()
        path = self.variables.get(f"{name}_FILE", "").strip()
        if value or not path:
            return value or self.fallback.get(name, "")
        try:
            return Path(path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as exc:
            reason = getattr(exc, "strerror", None) or "it is not UTF-8"
            raise SettingError(f"{name}_FILE", f"cannot be read: {reason}.") from exc


def from_process() -> Env:
    """Return this process's environment."""
    return Env(os.environ, load_runtime_env(data_dir_from(os.environ)))


def is_production(variables: Mapping[str, str]) -> bool:
    """True if these variables mean production, or may mean it."""
    if variables.get("PRODUCTION", "").strip().lower() in TRUE:
        return True
    for name in ("NODE_ENV", "DJANGO_ENV", "ENVIRONMENT"):
        if variables.get(name, "").strip().lower() in {"production", "prod"}:
            return True
    return any(variables.get(name, "").strip() for name in HOSTING_MARKERS)
