"""E-mail as a factor."""

from typing import Final

from twofactor.factors.contract import FactorType

FACTOR: Final = FactorType("email", label="E-mail", amr="otp", challenge_name="email")
