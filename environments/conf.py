"""Settings of environments."""

from dataclasses import dataclass
from typing import Annotated, Final

from platform_site.settings_table import Integer


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentSettings:
    """How long a deleted environment's data is kept."""

    retention_days: Annotated[
        int,
        Integer(
            "ZENVIRONMENT_RETENTION_DAYS",
            "Time between the deletion of an environment and that of its data.",
            default=7,
            unit="days",
            maximum=365,
        ),
    ]


TABLES: Final = (EnvironmentSettings,)
