"""Backup codes as a factor: they stand in for another one, and are none alone."""

from typing import Final

from twofactor.factors.contract import FactorType

FACTOR: Final = FactorType(
    "backup_codes",
    label="Backup code",
    amr="otp",
    # The interface spells it in the singular in challenges.
    challenge_name="backup_code",
    is_second_factor=False,
)
