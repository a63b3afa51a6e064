"""Settings of environments."""

from dataclasses import dataclass
from typing import Final

from common.settings.table import (
    integer,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentSettings:
    """The limit of environments."""

    limit: int = integer(
        "ZENVIRONMENT_LIMIT",
        "Environments of one organization; `manage.py setquota` gives one its own limit.",
        default=100,
        minimum=2,
    )


TABLES: Final = (EnvironmentSettings,)
