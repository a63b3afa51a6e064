"""Text message as a factor."""

from typing import Final

from twofactor.factors.contract import FactorType

FACTOR: Final = FactorType("sms", label="Text message", amr="sms", challenge_name="sms")
