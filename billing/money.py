"""Units of money. All amounts are integers in µcr: 1 credit is 1,000,000 µcr, 1 cent 1,000 credits.

A month of storage has 730 hours.
"""

from decimal import Decimal
from typing import Final

UCR_PER_CREDIT: Final = 1_000_000
UCR_PER_CENT: Final = 10**9
HOURS_PER_MONTH: Final = 730
PPM: Final = 1_000_000
MAX_UCR: Final = 2**63 - 1


def credits_text(ucr: int) -> str:
    """Return an amount in credits with all six decimals, such as ``0.000100``."""
    return f"{Decimal(ucr) / UCR_PER_CREDIT:.6f}"


def cents_of(ucr: int) -> int:
    """Return the whole cents in an amount; the rest is not paid out yet."""
    return ucr // UCR_PER_CENT
