"""Backup codes as a factor: they replace another factor, and cannot be the only one."""

from typing import Final

from twofactor.factors.contract import FactorType

FACTOR: Final = FactorType(
    "backup_codes",
    label="Backup code",
    amr="otp",
    # The API uses the singular in challenges.
    challenge_name="backup_code",
    is_second_factor=False,
)
