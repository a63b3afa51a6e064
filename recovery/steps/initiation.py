"""Starting a recovery: the same row, job and response whether or not the account exists.

The account is looked up by a task, which has only the row's id, so that the response time reveals
nothing; the request looks only whether it comes from a device of the owner, after the day's limit.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction

from accounts.errors import TooManyAttempts
from accounts.sessions import known_devices
from accounts.sessions.sessions import request_source
from accounts.signin import credentials
from common import rate_limits
from common.emails import folded
from common.ids import capability_id
from common.principals import PlatformRequest
from common.web.addresses import client_address, subscriber_network
from recovery import channels, questions, recovery_rows, tasks
from recovery.errors import RecoveryTooOften
from recovery.models import Method, Recovery
from recovery.tokens.channel_tokens import LIVES
from twofactor.stored_secrets import seal

# An hour.
STARTS_PER_ADDRESS: Final = 30
HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
# Starts for one account from one network per day: an owner needs few, and an attacker must not use
# up the account's limit.
STARTS_PER_NETWORK: Final = 5


@dataclass(frozen=True, slots=True)
class ClaimedAccount:
    """The claimed account. org_id: None if the address alone decides."""

    org_id: int | None
    email: str

    @property
    def subject(self) -> str:
        """The account's key for rate limits and decoys, in a normalized spelling.

        Without the organization: a claim with it and one without it share their limits, and decoys
        that differed between them would tell unknown accounts from known ones.
        """
        return folded(self.email)


def start(
    request: PlatformRequest, claim: ClaimedAccount, *, method: str, purpose: str, now: datetime
) -> dict[str, Any]:
    """Record a recovery and queue its processing; return ``recovery_id`` and ``expires_at``.

    For security questions also ``questions``: real ones, or decoys that always stay the same.
    Raises TooManyAttempts (the client's address) and RecoveryTooOften (the account), both 429, and
    both also for accounts that do not exist.
    """
    _check_rate_limit(request, claim, now)
    asked = questions.asked_of(claim.email, subject=claim.subject)
    asked = asked if method == Method.SECURITY_QUESTIONS else []
    recovery_id = capability_id()
    source = request_source(request)
    recovery = Recovery(
        digest=recovery_rows.capability_digest(recovery_id),
        method=method,
        purpose=purpose,
        request=seal(
            {"org_id": claim.org_id, "email": claim.email.strip(), "recovery_id": recovery_id}
        ),
        asked=asked,
        address=source.address,
        agent=source.agent[:300],
        created_at=now,
    )
    recovery.expires_at = now + LIVES[recovery.channel]
    with transaction.atomic():
        recovery.save(force_insert=True)
        tasks.resolve.defer(recovery_id=str(recovery.pk))
    answer: dict[str, Any] = {
        "recovery_id": recovery_id,
        "expires_at": int(recovery.expires_at.timestamp()),
    }
    if method == Method.SECURITY_QUESTIONS:
        answer["questions"] = questions.described(asked)
    return answer


def _check_rate_limit(request: PlatformRequest, claim: ClaimedAccount, now: datetime) -> None:
    network = subscriber_network(client_address(request))
    limit = STARTS_PER_ADDRESS
    rate_limits.enforce(
        "recovery", network, limit=limit, window=HOUR, error=TooManyAttempts, now=now
    )
    limit = STARTS_PER_NETWORK
    of_network = f"{network} {claim.subject}"
    rate_limits.enforce(
        "recovery of", of_network, limit=limit, window=DAY, error=RecoveryTooOften, now=now
    )
    # The account's limit is checked last, so that refused starts do not use it up.
    limit = channels.STARTS_PER_ACCOUNT
    wait_s = rate_limits.take("recovery of", claim.subject, limit=limit, window=DAY, now=now)
    if wait_s and not _has_share_of_devices(request, claim, now):
        raise RecoveryTooOften(retry_after_s=wait_s)


def _has_share_of_devices(request: PlatformRequest, claim: ClaimedAccount, now: datetime) -> bool:
    """True if the owner has signed in from this device: strangers cannot use up its limit.

    As many queries for an unknown account as for a known one.
    """
    user = credentials.find(claim.email)
    device = known_devices.device_of(user, request_source(request))
    if not known_devices.is_known(user, device):
        return False
    limit = channels.STARTS_FROM_KNOWN_DEVICES
    return not rate_limits.take(
        "recovery of known", claim.subject, limit=limit, window=DAY, now=now
    )
