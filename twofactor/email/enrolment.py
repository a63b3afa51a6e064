"""Enrolment of e-mail as a factor: the account's own address, with a code mailed to it."""

from datetime import datetime
from typing import Any, Final

from django.db import transaction

from common.principals import PlatformRequest, Principal
from outbox.messages import queue
from twofactor import sent_codes
from twofactor.email.factor import FACTOR
from twofactor.factors import enrolments
from twofactor.sent_codes import CodeChannel, CodeOwner


def is_available() -> bool:
    """Return True: mail is always configured."""
    return True


def hint_of(address: str) -> str:
    """Return the masked address."""
    local, _, domain = address.partition("@")
    return f"{local[:1]}•••@{domain}"


CHANNEL: Final = CodeChannel(FACTOR, hint_of)


def send(address: str, code: str, *, purpose: str, owner: CodeOwner, now: datetime) -> None:
    """Mail a code. purpose: continues the text "Your code", for example "to sign in"."""
    queue.send_mail(
        address,
        "email_code",
        {"code": code, "purpose": purpose, "minutes": sent_codes.LIFE_MINUTES},
        organization_id=owner.organization_id,
        user_id=owner.user_id,
        expires_at=now + sent_codes.LIFE,
    )


def setup(request: PlatformRequest, principal: Principal, *, now: datetime) -> dict[str, Any]:
    """Mail a code to the account's own address.

    Raises FactorNotAllowed (403), SendingTooOften (429).
    """
    user = enrolments.user_of(principal)
    enrolments.refuse_forbidden(user, FACTOR.name)
    # Outside the transaction, so that a refused sending stays counted.
    owner = CodeOwner(user.organization_id, user.pk)
    sent_codes.check_rate_limit("email", user.email, owner, request=request, now=now)
    with transaction.atomic():
        verification_id, code, row = sent_codes.begin(user, FACTOR.name, user.email, now=now)
        send(user.email, code, purpose="to confirm this address", owner=owner, now=now)
    return {
        "verification_id": verification_id,
        "expires_at": int(row.expires_at.timestamp()),
        "email_hint": hint_of(user.email),
        "delivery": "queued",
    }
