"""Step-up: sensitive operations require a proof of identity at most fifteen minutes old.

The proof is an answer to a challenge of a second factor, or else the password given again.
"""

from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.utils import timezone

from accounts.errors import InvalidCredentials
from accounts.models import Session, User
from accounts.sessions.sessions import request_source
from accounts.signin import credentials
from audit import trail
from common.principals import PlatformRequest, Principal
from twofactor.audit_tags import TwoFactorTag
from twofactor.errors import StepUpRequired
from twofactor.factors.holdings import has_proper_factor

MAX_AGE_S: Final = 900
# RFC 9470 §3; answered with 403, since clients refresh on 401 and would loop.
CHALLENGE: Final = (
    'Bearer realm="zonal", error="insufficient_user_authentication", '
    'error_description="A more recent proof is required", acr_values="{acr}", max_age="900"'
)


def require_recent_proof(principal: Principal) -> None:
    """Raise StepUpRequired unless the session has a recent proof.

    With an active second factor, it must be proven; otherwise the sign-in counts, or the password
    given again. A development token has no user to ask, and a pending sign-in is a few minutes old.
    Raises StepUpRequired (403); its ``proof`` names the required proof.
    """
    if principal.kind != "user" or principal.user_id is None:
        return
    now = timezone.now()
    if _is_recent(principal.mfa_time, now):
        return
    if has_proper_factor(principal.user_id):
        raise _required("second_factor", "aal2")
    if not _is_recent(principal.auth_time, now):
        raise _required("password", "aal1")


def prove_password(
    request: PlatformRequest, principal: Principal, password: str, *, now: datetime
) -> None:
    """Verify the password and update ``auth_time``; with a second factor this is not a step-up.

    The login's rate limits apply. Raises InvalidCredentials (401), TooManyAttempts (429).
    """
    user = User.objects.get(pk=principal.own_id)
    try:
        credentials.verify_again(user, password, source=request_source(request), now=now)
    except InvalidCredentials:
        # A caller with a session that guesses the password may have stolen the session.
        trail.record_request(request, TwoFactorTag.SESSION_REAUTHENTICATE, outcome="refused")
        raise
    with transaction.atomic():
        mine = Session.objects.filter(pk=principal.session_id)
        mine.update(auth_time=now)
        trail.record_request(request, TwoFactorTag.SESSION_REAUTHENTICATE)


def _is_recent(at_s: int | None, now: datetime) -> bool:
    if at_s is None:
        return False
    return now - timedelta(seconds=MAX_AGE_S) <= datetime.fromtimestamp(at_s, tz=now.tzinfo)


def _required(proof: str, acr: str) -> StepUpRequired:
    return StepUpRequired(
        extra={"proof": proof, "max_age": MAX_AGE_S},
        headers={"WWW-Authenticate": CHALLENGE.format(acr=acr)},
    )
