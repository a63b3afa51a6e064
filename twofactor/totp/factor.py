"""Authenticator app as a factor."""

from typing import Final

from twofactor.factors.contract import FactorType

FACTOR: Final = FactorType("totp", label="Authenticator app", amr="otp", challenge_name="totp")
