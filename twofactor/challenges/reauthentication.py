"""Reauthentication: proving the password again in a session."""

from datetime import datetime

from django.db import transaction

from accounts.errors import InvalidCredentials
from accounts.models import Session, User
from accounts.sessions.sessions import request_source
from accounts.signin import credentials
from audit import trail
from common.principals import PlatformRequest, Principal
from twofactor.audit_tags import TwoFactorTag


def by_password(
    request: PlatformRequest, principal: Principal, password: str, *, now: datetime
) -> None:
    """Verify the password and update ``auth_time``; with a second factor this is not a step-up.

    The login's rate limits apply. Raises InvalidCredentials (401), TooManyAttempts (429).
    """
    user = User.unscoped.get(pk=principal.own_id)  # unscoped: the principal's own
    try:
        credentials.verify_again(user, password, source=request_source(request), now=now)
    except InvalidCredentials:
        # A caller with a session that guesses the password may have stolen the session.
        trail.record_request(request, TwoFactorTag.SESSION_REAUTHENTICATE, outcome="refused")
        raise
    with transaction.atomic():
        mine = Session.unscoped.filter(pk=principal.session_id)  # unscoped: the principal's own
        mine.update(auth_time=now)
        trail.record_request(request, TwoFactorTag.SESSION_REAUTHENTICATE)
