"""Units of money. All amounts are integers in µcr: 1 credit is 1,000,000 µcr, 1 cent 1,000 credits.

A month of storage has 730 hours.
"""

from decimal import Decimal
from typing import Final

UCR_PER_CREDIT: Final = 1_000_000
UCR_PER_CENT: Final = 10**9
HOURS_PER_MONTH: Final = 730
PPM: Final = 1_000_000
LARGEST_UCR: Final = 2**63 - 1


def divided_half_even(numerator: int, divisor: int) -> int:
    """Return the quotient of two integers (divisor > 0), rounded half to even."""
    quotient, rest = divmod(numerator, divisor)
    if 2 * rest > divisor or (2 * rest == divisor and quotient % 2):
        quotient += 1
    return quotient


def credits_text(ucr: int) -> str:
    """Return an amount in credits with all six decimals, such as ``0.000100``."""
    return f"{Decimal(ucr) / UCR_PER_CREDIT:.6f}"


def cents_of(ucr: int) -> int:
    """Return the whole cents in an amount; the rest is not paid out yet."""
    return ucr // UCR_PER_CENT
