"""Settings of environments."""

from dataclasses import dataclass
from typing import Final

from common.settings.table import (
    integer,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentSettings:
    """The limit of environments, and how long a deleted environment's data is kept."""

    limit: int = integer(
        "ZENVIRONMENT_LIMIT",
        "Environments of one organization; `manage.py setquota` gives one its own limit.",
        default=100,
        minimum=2,
    )

    retention_days: int = integer(
        "ZENVIRONMENT_RETENTION_DAYS",
        "Time between the deletion of an environment and that of its data.",
        default=7,
        unit="days",
        maximum=365,
    )


TABLES: Final = (EnvironmentSettings,)
