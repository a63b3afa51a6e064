"""Sign-in of a program in a terminal: its user allows it in a browser.

1. The program creates a verifier, sends its challenge (RFC 7636), and gets the id of a request.
2. Its user opens the page of the request in a browser, compares what it shows with the terminal,
   and allows it there with a recent proof of identity: with the second factor, if there is one.
3. The browser carries a one-time code to the program: to its listener on 127.0.0.1, or by hand.
4. The program exchanges the code and its verifier for a session of its own.

An attacker who sends a victim the link of the attacker's own request gains nothing if it is
allowed, unlike with codes that a device polls for (RFC 8628, section 5.4): the code goes to the
machine of the browser. An attacker who intercepts the code lacks the verifier.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db import transaction

from accounts.audit_tags import AccountTag
from accounts.errors import TerminalSignInGone, TooManyAttempts
from accounts.models import Session, TerminalSignIn, User
from accounts.sessions import sessions
from accounts.sessions.authentication import TRUSTED_DEVICE
from accounts.sessions.sessions import SessionTokens
from accounts.signin import metrics, signin
from accounts.signin.signin import SignInAttempt, SignInMethod, StageResponse
from audit import trail
from common import ids, one_time_secrets, rate_limits
from common.one_time_secrets import digest, new_secret
from common.principals import PlatformRequest, Principal
from common.web.addresses import subscriber_network
from environments import environments
from environments.errors import EnvironmentNotFound
from outbox.messages.templates import console_link

REQUEST_LIFETIME: Final = timedelta(minutes=10)
# Long enough to copy the code to another machine.
CODE_LIFETIME: Final = timedelta(minutes=2)
WINDOW: Final = timedelta(minutes=15)
STARTS_PER_NETWORK: Final = 30
MATCHING_CHARS: Final = 8


@dataclass(frozen=True, slots=True)
class TerminalSignInRequest:
    """A new request. page_url: to open in the user's browser."""

    request_id: str
    matching_code: str
    page_url: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class TerminalApproval:
    """The one-time code. port: of the program's listener; None if the user copies the code."""

    code: str
    port: int | None
    expires_at: datetime


def matching_code(request_id: str) -> str:
    """Return the code that both terminal and page show: eight characters of a digest of the id.

    It gives no access. It differs if the page is that of someone else's request.
    """
    hashed = hashlib.sha256(f"matching code\0{request_id}".encode()).digest()
    letters = "".join(ids.CODE_ALPHABET[byte % 32] for byte in hashed[:MATCHING_CHARS])
    return f"{letters[:4]}-{letters[4:]}"


def start(
    request: PlatformRequest,
    *,
    code_challenge: str,
    host: str,
    port: int | None,
    environment: str,
    now: datetime,
) -> TerminalSignInRequest:
    """Create a request of a program. Raises TooManyAttempts (429) for its network."""
    source = sessions.request_source(request)
    rate_limits.enforce(
        "terminal sign-in",
        subscriber_network(source.address),
        limit=STARTS_PER_NETWORK,
        window=WINDOW,
        error=TooManyAttempts,
        now=now,
    )
    request_id = new_secret()
    waiting = TerminalSignIn(
        digest=digest(request_id),
        code_challenge=code_challenge,
        host=host,
        address=source.address,
        agent=source.agent[:300],
        port=port,
        environment=environment,
        created_at=now,
        expires_at=now + REQUEST_LIFETIME,
    )
    waiting.save(force_insert=True)
    link = console_link("terminal", request=request_id)
    return TerminalSignInRequest(request_id, matching_code(request_id), link, waiting.expires_at)


def find(request_id: str, *, now: datetime, for_update: bool = False) -> TerminalSignIn:
    """Return a pending request.

    Raises TerminalSignInGone (410) if it is unknown, expired, denied or allowed.
    """
    rows = TerminalSignIn.objects.filter(
        pk=digest(request_id), code_digest=None, expires_at__gt=now
    )
    found = (rows.select_for_update() if for_update else rows).first()
    if found is None:
        raise TerminalSignInGone
    return found


def environment_of(waiting: TerminalSignIn, principal: Principal) -> str:
    """Return the id of the request's environment; '' if the caller has no such environment.

    The program's own text is not returned: it could mislead the deciding user.
    """
    if not waiting.environment:
        return principal.environment_id
    try:
        return str(environments.find(principal.organization_id, waiting.environment).slug)
    except EnvironmentNotFound:
        return ""


def allow(
    request: PlatformRequest, principal: Principal, request_id: str, *, now: datetime
) -> TerminalApproval:
    """Allow a request for the caller; return the code that the program exchanges.

    Raises TerminalSignInGone (410), EnvironmentNotFound (404: it can still be denied).
    """
    with transaction.atomic():
        waiting = find(request_id, now=now, for_update=True)
        user = User.objects.get(pk=principal.own_id)
        target = signin.environment_for(user, waiting.environment or principal.environment_id)
        code = new_secret()
        waiting.user, waiting.session_id = user, principal.session_id
        waiting.environment = target.slug
        waiting.code_digest = digest(code)
        waiting.expires_at = now + CODE_LIFETIME
        waiting.save()
        _record(request, AccountTag.TERMINAL_SIGN_IN_ALLOW, waiting)
    return TerminalApproval(code, waiting.port, waiting.expires_at)


def deny(request: PlatformRequest, request_id: str, *, now: datetime) -> int | None:
    """Deny a request; return the port of the listener to notify.

    Raises TerminalSignInGone (410).
    """
    with transaction.atomic():
        waiting = find(request_id, now=now, for_update=True)
        waiting.delete()
        _record(request, AccountTag.TERMINAL_SIGN_IN_DENY, waiting)
    return waiting.port


def exchange(
    request: PlatformRequest, code: str, verifier: str, *, now: datetime
) -> SessionTokens | StageResponse:
    """Open the program's session; a code works once, and a wrong verifier uses it up.

    Raises TerminalSignInGone (410), also if the session that allowed it has ended, and
    InvalidCredentials (401) for a user who was just disabled.
    """
    with metrics.count_refusals(SignInMethod.TERMINAL):
        with transaction.atomic():
            waiting = _use_up(code, now=now)
        if waiting is None or not one_time_secrets.matches_challenge(
            verifier, waiting.code_challenge
        ):
            raise TerminalSignInGone
        with transaction.atomic():
            allowing = _allowing_session(waiting, now=now)
            return signin.finish(request, _attempt(allowing, waiting.environment, now=now))


def on_trust_ended(user_id: UUID) -> None:
    """Delete a user's allowed requests that no program has exchanged yet (a lifecycle hook).

    The session that allowed a request may continue, such as the one that changed the password.
    """
    TerminalSignIn.objects.filter(user_id=user_id).delete()


def delete_old(*, now: datetime) -> int:
    """Delete expired requests; return their number."""
    number: int = TerminalSignIn.objects.filter(expires_at__lt=now).delete()[0]
    return number


def _use_up(code: str, *, now: datetime) -> TerminalSignIn | None:
    """Return and delete the request of a code; of concurrent exchanges one gets it."""
    rows = TerminalSignIn.objects.filter(code_digest=digest(code), expires_at__gt=now)
    found = rows.select_for_update(of=("self",)).first()
    if found is not None:
        found.delete()
    return found


def _allowing_session(waiting: TerminalSignIn, *, now: datetime) -> Session:

    rows = Session.objects.select_related("user__organization", "user__last_environment")
    found: Session | None = rows.filter(pk=waiting.session_id, user_id=waiting.user_id).first()
    if found is None or not found.is_live(now):
        raise TerminalSignInGone
    return found


def _attempt(allowing: Session, environment: str, *, now: datetime) -> SignInAttempt:
    """Return the sign-in with the factors that the browser's session has proven.

    If these include no second factor, the stages require one that was set up in the meantime.
    """
    user = allowing.user
    method = allowing.mfa_method
    return SignInAttempt(
        user,
        signin.environment_for(user, environment),
        method=SignInMethod.TERMINAL,
        # The trusted device is the browser and does not apply to the program's machine.
        amr=[name for name in allowing.amr if name != TRUSTED_DEVICE],
        now=now,
        mfa_method=method,
        mfa_is_allowed=method in user.organization.mfa_allowed_methods,
        auth_time=allowing.auth_time,
        mfa_time=allowing.mfa_time,
    )


def _record(request: PlatformRequest, tag: AccountTag, waiting: TerminalSignIn) -> None:
    trail.record_request(request, tag, host=waiting.host, asked_from=waiting.address)
