"""Settings of account recovery."""

from dataclasses import dataclass
from typing import Final

from common.settings.table import (
    integer,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoverySettings:
    """Rate limits of recoveries, and the delay of a recovery without the second factor."""

    starts_per_address: int = integer(
        "ZLIMIT_RECOVERIES_PER_ADDRESS",
        "Recoveries started per client address.",
        default=30,
        unit="per hour",
        minimum=1,
    )
    starts_per_account: int = integer(
        "ZLIMIT_RECOVERIES_PER_ACCOUNT",
        "Recoveries started for one account; five of them from one client address.",
        default=50,
        unit="per day",
        minimum=1,
    )
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
