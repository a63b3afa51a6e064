"""Passkey as a factor."""

from typing import Final

from twofactor.factors.contract import FactorType

FACTOR: Final = FactorType("webauthn", label="Passkey", amr="hwk", challenge_name="webauthn")
