"""Codes that are sent by text message or e-mail."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db import transaction

from accounts.models import User
from accounts.profile import mailbox
from accounts.signin import mailbox_proofs
from common import rate_limits
from common.crypto import decrypt
from common.ids import capability_id
from common.principals import PlatformRequest, Principal
from common.web.addresses import client_address, subscriber_network
from twofactor.errors import SendingTooOften
from twofactor.factors import enrolments, throttle
from twofactor.factors.contract import ChallengeAnswer, FactorType
from twofactor.models import Enrolment, Factor
from twofactor.one_time_codes import six_digits
from twofactor.stored_secrets import digest, is_same, one_time_code

# A day.
SENDS_PER_ORGANIZATION: Final = 2_000
# A day, for setting factors up.
SENDS_PER_ADDRESS: Final = 200
DAY: Final = timedelta(days=1)
LIFE_MINUTES: Final = 10
LIFE: Final = timedelta(minutes=LIFE_MINUTES)
# The kinds that are sent by text message, each of which costs.
TEXTED: Final = frozenset({"sms", "sms setup", "recovery sms"})

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class CodeOwner:
    """The user and organization of a code, for the delivery's row."""

    organization_id: int
    user_id: UUID


@dataclass(frozen=True, slots=True)
class CodeChannel:
    """A method whose codes are sent. hint_of: returns the masked number or address."""

    factor: FactorType
    hint_of: Callable[[str], str]


def check_rate_limit(
    kind: str,
    to: str,
    owner: CodeOwner,
    *,
    request: PlatformRequest | None = None,
    per_receiver: int | None = None,
    now: datetime,
) -> None:
    """Count one sending against the daily limits of the recipient and of the organization.

    request: of a set-up, whose recipient the caller chooses: the client's address and the account
    then have a limit too, because anyone can create organizations for free and could earn with
    premium numbers. per_receiver: the recipient's limit, if it is not that of codes. Text messages
    also count against the limit of the installation.
    Raises SendingTooOften (429).
    """
    # The recipient's limit is checked after the others, so that refused requests do not use it up.
    caps = [
        (f"organization {owner.organization_id}", SENDS_PER_ORGANIZATION),
        (to, per_receiver or mailbox_proofs.SENDS_PER_RECEIVER),
    ]
    if request is not None:
        network = subscriber_network(client_address(request))
        # Counted separately; otherwise attackers could use up the recipient's limit for sign-ins.
        kind = f"{kind} setup"
        caps.insert(0, (f"network {network}", SENDS_PER_ADDRESS))
        caps.insert(1, (f"account {owner.user_id}", mailbox_proofs.SENDS_PER_RECEIVER))
    for subject, cap in caps:
        rate_limits.enforce(
            f"send {kind}", subject, limit=cap, window=DAY, error=SendingTooOften, now=now
        )
    if kind in TEXTED:
        _count_text(kind, now)


def _count_text(kind: str, now: datetime) -> None:
    """Count one text message of the installation, last: a refused one is not sent.

    Raises SendingTooOften (429).
    """
    limit = settings.TWOFACTOR.texts_per_day
    wait_s = rate_limits.take(f"send {kind}", "everybody", limit=limit, window=DAY, now=now)
    if wait_s:
        log.error("texts_of_the_day_sent", purpose=kind, limit=limit)
        raise SendingTooOften(retry_after_s=wait_s)


def code_digest(binding: str, code: str) -> str:
    """Return the digest of a sent code, bound to its challenge."""
    return digest("sent code", binding, code)


def challenge_digest(factor: Factor, challenge_id: str, code: str) -> str:
    """Return the digest of a code that is sent for a challenge.

    It is bound to the number or address as well: once that was replaced, its owner proves nothing.
    """
    return code_digest(f"{challenge_id} {decrypt(factor.secret)}", code)


def is_right(binding: str, kept: str, code: str) -> bool:
    """Compare a typed code with the sent one. Raises MalformedCode."""
    return is_same(kept, code_digest(binding, six_digits(code)))


def check(
    factor: Factor,
    secret: str,
    answer: ChallengeAnswer,
    *,
    challenge_id: str,
    request: PlatformRequest,
    now: datetime,
) -> bool:
    """Compare a code with the one that was sent for this challenge (a ``Proof.check``).

    Raises MalformedCode.
    """
    code = six_digits(answer.code)
    if not is_same(secret, challenge_digest(factor, challenge_id, code)):
        return False
    throttle.reset(factor, now)
    return True


def begin(user: User, method: str, to: str, *, now: datetime) -> tuple[str, str, Enrolment]:
    """Begin to enrol a number or an address; return the enrolment's id, the code, and the row."""
    code, binding = one_time_code(), capability_id()
    secret = {"to": to, "binding": binding, "code": code_digest(binding, code)}
    enrolment_id, row = enrolments.begin(user, method, secret, now=now)
    return enrolment_id, code, row


def verify(
    request: PlatformRequest,
    principal: Principal,
    channel: CodeChannel,
    *,
    verification_id: str,
    code: str,
    now: datetime,
) -> dict[str, Any]:
    """Activate a number or an address with the code that was sent to it.

    Raises MalformedCode (400), CodeRejected (401), EnrolmentGone (410), FactorNotAllowed (403).
    """
    method = channel.factor.name
    user = enrolments.user_of(principal)
    enrolments.refuse_forbidden(user, method)
    refusal = None
    with transaction.atomic():
        locked = enrolments.lock(user, method, verification_id, now=now)
        kept = locked.secret
        if is_right(kept["binding"], kept["code"], code):
            hint = channel.hint_of(kept["to"])
            _, is_new = enrolments.activate(
                principal, locked, secret=kept["to"], hint=hint, now=now
            )
            if method == "email":
                mailbox.note_proof(request, user.pk, kept["to"], now=now)
            more = enrolments.complete(
                request, principal, user, channel.factor, is_replaced=not is_new, now=now
            )
        else:
            refusal = enrolments.count_failure(locked)
    if refusal is not None:
        raise refusal
    return {"success": True, **more}
