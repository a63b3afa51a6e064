"""The common last step of every sign-in method: login stages, then a session.

Every sign-in method (password, passkey, provider, invitation) calls ``finish``; nothing else opens
sessions (checked by tests/rules). The stages are in STAGES, because the
second factor is in a higher layer.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from accounts.audit_tags import AccountTag
from accounts.models import Session, User
from accounts.sessions import known_devices, sessions
from accounts.sessions.authentication import TRUSTED_DEVICE
from accounts.sessions.sessions import Assurance, SessionTokens, request_source
from accounts.signin import credentials, metrics
from audit import trail
from common.principals import PlatformRequest
from common.provided import Provided
from common.scoping import within_organization
from environments import environments
from environments.models import Environment


class SignInMethod(StrEnum):
    """The sign-in methods; tests run for each of them, so that a new one is covered."""

    SIGNUP = "signup"
    SIGNUP_LINK = "signup_link"
    PASSWORD = "password"  # noqa: S105 - the name of a sign-in method
    PASSKEY = "passkey"
    INVITATION = "invitation"
    EXTERNAL = "external"
    SECOND_FACTOR = "second_factor"
    ENROLMENT = "enrolment"
    OPERATOR = "operator"
    TERMINAL = "terminal"


@dataclass
class SignInAttempt:
    """An authenticated user before the session is opened; stages add members of the response.

    amr: RFC 8176 names of the proven factors. mfa_method: the second factor, '' without one.
    auth_time, mfa_time: when they were proven, if not in this request. warnings, extra: members of
    the response.
    """

    user: User
    environment: Environment
    method: SignInMethod
    amr: list[str]
    now: datetime
    mfa_method: str = ""
    mfa_is_allowed: bool = True
    auth_time: datetime | None = None
    mfa_time: datetime | None = None
    warnings: list[dict[str, Any]] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StageResponse:
    """The response of a stage that requires something from the user first."""

    answer: dict[str, Any]


Stage = Callable[[PlatformRequest, SignInAttempt], StageResponse | None]
# Higher apps append theirs in ``AppConfig.ready()``.
STAGES: Final[list[Stage]] = []
TRUSTED_DEVICE_CHECK: Final = Provided[[PlatformRequest, User | None, datetime], bool](
    "the check of trusted devices"
)


def is_from_trusted_device(request: PlatformRequest, user: User | None, *, now: datetime) -> bool:
    """True if a sign-in comes from a trusted device of its user."""
    return TRUSTED_DEVICE_CHECK(request, user, now)


def environment_for(user: User, wanted: str) -> Environment:
    """Return the environment to sign in to: the requested one, else the last used, else ``live``.

    Raises EnvironmentNotFound if the requested one does not exist.
    """
    if wanted:
        return environments.find(user.organization_id, wanted)
    last: Environment | None = user.last_environment
    if last is not None and last.deleted_at is None:
        return last
    return environments.find(user.organization_id, "live")


def finish(request: PlatformRequest, attempt: SignInAttempt) -> SessionTokens | StageResponse:
    """Run the stages and open the session, or return the response of the first stage that stops it.

    Call inside a transaction. Raises InvalidCredentials (401) for a user who was disabled, or whose
    password was changed, since it was read.
    """
    # An account created by this request is slightly younger than the request's time.
    attempt.now = max(attempt.now, attempt.user.created_at)
    with within_organization(attempt.user.organization_id):
        return _finish(request, attempt)


def _finish(request: PlatformRequest, attempt: SignInAttempt) -> SessionTokens | StageResponse:
    for stage in STAGES:
        response = stage(request, attempt)
        if response is not None:
            credentials.lock_unchanged(attempt.user)
            _note(request, attempt, outcome="pending")
            metrics.SIGN_INS.labels(attempt.method, "pending", "").inc()
            return response
    attempt.extra["email_verified"] = attempt.user.email_verified_at is not None
    has_second = bool(attempt.mfa_method) and attempt.mfa_is_allowed
    session = sessions.open_session(
        attempt.user,
        attempt.environment,
        assurance=Assurance(
            aal=2 if has_second else 1,
            amr=attempt.amr,
            mfa_method=attempt.mfa_method,
            auth_time=attempt.auth_time,
            mfa_time=attempt.mfa_time,
        ),
        source=request_source(request),
        now=attempt.now,
    )
    _note(request, attempt, session=str(session.id))
    _note_device(request, attempt, session)
    metrics.SIGN_INS.labels(attempt.method, "success", attempt.mfa_method).inc()
    return SessionTokens(session, attempt.environment, attempt.warnings, attempt.extra)


def note_refused(
    request: PlatformRequest, email: str, *, tag: AccountTag = AccountTag.SESSION_CREATE
) -> None:
    """Record a refused login, also for an unknown address, so that both take the same time."""
    user = credentials.find(email)
    trail.add(
        request,
        tag,
        outcome="refused",
        organization_id=user.organization_id if user else None,
        actor_id=user.pk if user else None,
        actor=user.email if user else "",
    )


def _note_device(request: PlatformRequest, attempt: SignInAttempt, session: Session) -> None:
    """Notify the user of a sign-in from a new device; an operator's is only in the audit trail."""
    if attempt.method == SignInMethod.OPERATOR:
        return
    if not known_devices.is_new(session, now=attempt.now) or TRUSTED_DEVICE in attempt.amr:
        return
    slug = attempt.environment.slug
    known_devices.notify(request, session, environment=slug, now=attempt.now)


def _note(
    request: PlatformRequest, attempt: SignInAttempt, *, outcome: str = "success", **data: Any
) -> None:
    data |= {"environment": attempt.environment.slug, "method": str(attempt.method)}
    trail.record_user(request, AccountTag.SESSION_CREATE, attempt.user, outcome=outcome, **data)
