"""Sign-in with a passkey: possession and user verification prove both factors together.

It does not reveal who has an account: the options are the same for everyone, and every failure
is the same 401. Guessed passwords do not throttle it.
"""

from datetime import datetime, timedelta
from secrets import token_bytes
from typing import Any, Final

from django.conf import settings
from django.db import transaction
from webauthn import generate_authentication_options
from webauthn.helpers import options_to_json_dict
from webauthn.helpers.structs import UserVerificationRequirement

from accounts.audit_tags import AccountTag
from accounts.errors import TooManyAttempts
from accounts.models import User
from accounts.sessions.sessions import SessionTokens
from accounts.signin import metrics, signin
from accounts.signin.signin import SignInAttempt, SignInMethod, StageResponse, environment_for
from audit import trail
from common import rate_limits
from common.emails import folded
from common.ids import capability_id
from common.principals import PlatformRequest
from common.web.addresses import client_address, subscriber_network
from environments.models import Environment
from twofactor.errors import ChallengeGone, PasskeyRejected
from twofactor.factors import holdings, throttle
from twofactor.models import Passkey, PasskeyRequest
from twofactor.stored_secrets import digest, is_same
from twofactor.webauthn import origins, passkeys
from twofactor.webauthn.ceremony import ExpectedResponse
from twofactor.webauthn.factor import FACTOR
from twofactor.webauthn.responses import Assertion, assertion

LIFE: Final = timedelta(minutes=5)
WINDOW: Final = timedelta(minutes=15)
# In the window.
STARTS_PER_ADDRESS: Final = 600
CHALLENGE_BYTES: Final = 32


def start(request: PlatformRequest, *, email: str, rp_id: str, now: datetime) -> dict[str, Any]:
    """Return options for discoverable passkeys: the same with a known, an unknown or no address.

    email: accept only that account's passkeys; '' accepts all. rp_id: '' for the default.
    Raises TooManyAttempts (429), InvalidRequest (400) naming ``rp_id``, ChannelUnavailable (503).
    """
    chosen = origins.rp_id_of(rp_id)
    _check_rate_limit(request, "passkey start", STARTS_PER_ADDRESS, now)
    challenge_id, challenge = capability_id(), token_bytes(CHALLENGE_BYTES)
    row = PasskeyRequest(
        digest=digest("passkey", challenge_id),
        challenge=challenge,
        rp_id=chosen,
        email_digest=_email_digest(email),
        expires_at=now + LIFE,
    )
    row.save(force_insert=True)
    options = generate_authentication_options(
        rp_id=chosen,
        challenge=challenge,
        timeout=int(LIFE.total_seconds() * 1000),
        allow_credentials=[],
        user_verification=UserVerificationRequirement.REQUIRED,
    )
    return {
        "challenge_id": challenge_id,
        "expires_at": int(row.expires_at.timestamp()),
        "request_options": options_to_json_dict(options),
    }


def finish(
    request: PlatformRequest,
    *,
    challenge_id: str,
    credential: dict[str, Any],
    environment: str,
    now: datetime,
) -> SessionTokens | StageResponse:
    """Open a session for the owner of a passkey; a start accepts one answer, right or wrong.

    Raises MalformedCredential (400), PasskeyRejected (401: unknown, wrong, without user
    verification, or disabled user), EnvironmentNotFound (404), ChallengeGone (410), TooManyAttempts
    (429).
    """
    with metrics.count_refusals(SignInMethod.PASSKEY):
        user = proven_user(request, challenge_id=challenge_id, credential=credential, now=now)
        target = environment_for(user, environment)
        with transaction.atomic():
            return signin.finish(request, _attempt(user, target, now))


def proven_user(
    request: PlatformRequest, *, challenge_id: str, credential: dict[str, Any], now: datetime
) -> User:
    """Return the verified owner of a passkey; a start accepts one answer.

    Raises MalformedCredential, PasskeyRejected, ChallengeGone and TooManyAttempts like ``finish``.
    """
    response = assertion(credential)
    _check_rate_limit(request, "passkey", settings.ACCOUNTS.logins_per_address, now)
    asked = _use_up(challenge_id, now)
    with transaction.atomic():
        passkey = _prove(request, response, asked, now)
    # Raised outside the transaction, so that the audit trail keeps the refusal.
    if passkey is None:
        raise PasskeyRejected
    # Outside it as well, because challenges lock the factor before its passkeys.
    throttle.reset(passkey.factor, now)
    rate_limits.uncount("passkey", _network(request), window=WINDOW, now=now)
    user: User = passkey.factor.user
    return user


def _attempt(user: User, environment: Environment, now: datetime) -> SignInAttempt:
    user_holdings = holdings.holdings_of(user.pk)
    # If the policy requires another factor that the user has, the passkey is only the first factor.
    counts = FACTOR.name in user_holdings.askable
    return SignInAttempt(
        user,
        environment,
        method=SignInMethod.PASSKEY,
        amr=["hwk", "user", "mfa"] if counts else ["hwk", "user"],
        now=now,
        mfa_method=FACTOR.name if counts else "",
        mfa_is_allowed=FACTOR.name in user_holdings.policy.mfa_allowed_methods,
    )


def _use_up(challenge_id: str, now: datetime) -> PasskeyRequest:
    """Return and delete the start that an answer belongs to; of concurrent answers one gets it."""
    rows = PasskeyRequest.objects.filter(pk=digest("passkey", challenge_id), expires_at__gt=now)
    with transaction.atomic():
        found = rows.select_for_update().first()
        if found is None:
            raise ChallengeGone
        rows.delete()
    return found


def _prove(
    request: PlatformRequest, response: Assertion, start: PasskeyRequest, now: datetime
) -> Passkey | None:
    rows = Passkey.objects.select_related(
        "factor__user__organization", "factor__user__last_environment"
    )
    passkey = rows.filter(credential_id=response.raw_id, rp_id=start.rp_id).first()
    user: User | None = passkey.factor.user if passkey else None
    asked = ExpectedResponse(bytes(start.challenge), start.rp_id, origins.origins_of(start.rp_id))
    if (
        passkey is not None
        and user is not None
        and user.is_active
        and is_same(start.email_digest, _email_digest(user.email if start.email_digest else ""))
        and passkeys.use(passkey, response, asked, is_only_proof=True, request=request, now=now)
    ):
        return passkey
    trail.add(
        request,
        AccountTag.SESSION_CREATE,
        outcome="refused",
        organization_id=user.organization_id if user else None,
        actor_id=user.pk if user else None,
        actor=str(user) if user else "",
        data={"method": str(SignInMethod.PASSKEY)},
    )
    return None


def _email_digest(email: str) -> str:
    account = folded(email)
    return digest("passkey email", account) if account else ""


def _check_rate_limit(request: PlatformRequest, kind: str, limit: int, now: datetime) -> None:
    rate_limits.enforce(
        kind, _network(request), limit=limit, window=WINDOW, error=TooManyAttempts, now=now
    )


def _network(request: PlatformRequest) -> str:
    return subscriber_network(client_address(request))
