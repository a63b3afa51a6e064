"""Settings of the audit trail."""

from dataclasses import dataclass
from typing import Final

from common.settings.table import (
    integer,
)

# A database trigger refuses to delete younger events.
MIN_RETENTION_DAYS: Final = 30


def _retention_days(days: int) -> int:
    if 0 < days < MIN_RETENTION_DAYS:
        raise ValueError(f"must be 0, or at least {MIN_RETENTION_DAYS}.")
    return days


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """How long events are kept."""

    retention_days: int = integer(
        "ZAUDIT_RETENTION_DAYS",
        "How long events of the audit trail are kept, at least 30; 0 keeps all.",
        default=365,
        unit="days",
        maximum=36500,
        parse=_retention_days,
    )


TABLES: Final = (AuditSettings,)
