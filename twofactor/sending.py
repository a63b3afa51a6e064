"""Codes that are sent: by text message and by e-mail."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import transaction

from accounts import limits
from accounts.models import User
from platform_site.lib.ids import capability_id
from platform_site.lib.principals import PlatformRequest, Principal
from twofactor import enrolments
from twofactor.capabilities import digest, is_same, one_time_code
from twofactor.codes import six_digits
from twofactor.errors import SendingTooOften
from twofactor.models import Enrolment

DAY: Final = timedelta(days=1)
LIFE: Final = timedelta(minutes=10)
LIFE_MINUTES: Final = 10


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose code it is, for the delivery's row."""

    organization_id: int
    user_id: UUID


def refuse_flood(kind: str, to: str, organization_id: int, *, now: datetime) -> None:
    """Count one sending against the daily caps of the receiver and of the organization.

    Raises SendingTooOften (429).
    """
    caps = (
        (to, settings.MFA_SENDS_PER_RECEIVER),
        (f"organization {organization_id}", settings.MFA_SENDS_PER_ORGANIZATION),
    )
    for subject, cap in caps:
        wait_s = limits.take(f"send {kind}", subject, limit=cap, window=DAY, now=now)
        if wait_s:
            raise SendingTooOften(retry_after_s=wait_s)


def code_digest(binding: str, code: str) -> str:
    """Give what is kept of a sent code: bound to its challenge, so that it fits no other."""
    return digest("sent code", binding, code)


def is_right(binding: str, kept: str, code: str) -> bool:
    """Compare a typed code with what was sent.

    Raises MalformedCode.
    """
    return is_same(kept, code_digest(binding, six_digits(code)))


def begin(user: User, method: str, to: str, *, now: datetime) -> tuple[str, str, Enrolment]:
    """Begin to enrol a number or an address; give the enrolment's id, the code, and the row."""
    code, binding = one_time_code(), capability_id()
    secret = {"to": to, "binding": binding, "code": code_digest(binding, code)}
    enrolment_id, row = enrolments.begin(user, method, secret, now=now)
    return enrolment_id, code, row


def verify(
    request: PlatformRequest,
    principal: Principal,
    method: str,
    *,
    verification_id: str,
    code: str,
    hint_of: Callable[[str], str],
    now: datetime,
) -> dict[str, Any]:
    """Activate a number or an address with the code that was sent to it.

    Raises MalformedCode (400), CodeRejected (401), EnrolmentGone (410), MethodNotAllowed (403).
    """
    user = enrolments.user_of(principal)
    enrolments.refuse_forbidden(user, method)
    refusal = None
    with transaction.atomic():
        taken = enrolments.take(user, method, verification_id, now=now)
        kept = taken.secret
        if is_right(kept["binding"], kept["code"], code):
            enrolments.activate(taken, secret=kept["to"], hint=hint_of(kept["to"]), now=now)
            more = enrolments.complete(request, principal, user, method, now=now)
        else:
            refusal = enrolments.refuse(taken)
    if refusal is not None:
        raise refusal
    return {"success": True, **more}
