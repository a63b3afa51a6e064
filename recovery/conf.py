"""Settings of account recovery."""

from dataclasses import dataclass
from typing import Final

from common.settings.table import (
    integer,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoverySettings:
    """The delay of a recovery without the second factor."""

    delay_s: int = integer(
        "ZRECOVERY_DELAY_SECS",
        "Wait between two proofs from a user who lost the second factor and its removal; any "
        "notified address can cancel until then.",
        default=86400,
        unit="s",
        minimum=60,
        maximum=2592000,
    )


TABLES: Final = (RecoverySettings,)
