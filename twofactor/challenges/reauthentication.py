"""Proving the first factor again, in a session that lives."""

from datetime import datetime

from django.db import transaction

from accounts.audit import audit
from accounts.errors import InvalidCredentials
from accounts.models import Session
from accounts.signin import credentials
from accounts.signin.signin import request_source
from platform_site.lib.principals import PlatformRequest, Principal
from twofactor.audit_tags import TwoFactorTag


def by_password(
    request: PlatformRequest, principal: Principal, password: str, *, now: datetime
) -> None:
    """Move the session's ``auth_time``; where a factor is active, that alone opens nothing more.

    Under the login's own limits. Raises InvalidCredentials (401), TooManyAttempts (429).
    """
    email = principal.email or ""
    try:
        credentials.verify(email, password, source=request_source(request), now=now)
    except InvalidCredentials:
        # A caller that has a session and guesses the password may have stolen the session.
        audit.record_request(request, TwoFactorTag.SESSION_REAUTHENTICATE, outcome="refused")
        raise
    with transaction.atomic():
        mine = Session.unscoped.filter(pk=principal.session_id)  # unscoped: the principal's own
        mine.update(auth_time=now)
        audit.record_request(request, TwoFactorTag.SESSION_REAUTHENTICATE)
