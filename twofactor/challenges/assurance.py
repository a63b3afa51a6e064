"""Raising a session's assurance level after a proven second factor."""

from datetime import datetime
from typing import Final

from accounts.models import Session
from twofactor.factors.contract import FactorType

ASSURANCE_FIELDS: Final = ("aal", "mfa_time", "mfa_method", "amr")


def raise_assurance(session: Session, factor: FactorType, *, now: datetime) -> None:
    """Set a session's assurance to level 2; the caller saves ASSURANCE_FIELDS."""
    session.aal, session.mfa_time, session.mfa_method = 2, now, factor.name
    session.amr = sorted({*session.amr, factor.amr, "mfa"})
