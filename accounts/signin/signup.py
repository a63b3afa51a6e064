"""Sign-up: an organization, its built-in environments and its first admin, in one transaction."""

from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import IntegrityError, transaction

from accounts import passwords
from accounts.audit_tags import AccountTag
from accounts.errors import EmailTaken, TooManyAttempts
from accounts.models import User
from accounts.sessions.sessions import SessionTokens
from accounts.signin import mailbox_proofs, signin
from accounts.signin.credentials import find
from accounts.signin.signin import SignInAttempt, SignInMethod, StageResponse
from audit import trail
from common import rate_limits
from common.principals import PlatformRequest
from common.web.addresses import client_address, subscriber_network
from environments import environments
from environments.models import Organization
from outbox.webhooks import events

WINDOW: Final = timedelta(hours=1)
TAKEN: Final = "If it is your address, sign in, or request a sign-up link by mail."


def sign_up(
    request: PlatformRequest, email: str, password: str, *, organization: str, now: datetime
) -> SessionTokens | StageResponse:
    """Create an organization and its first admin, signed in to ``live``.

    organization: its name; '' derives it from the address.
    Raises TooManyAttempts (429), InvalidRequest (400) for a weak password, EmailTaken (409).
    """
    # Counted before and outside the transaction, so that a refused sign-up stays counted.
    _check_rate_limit(client_address(request), now)
    email = canonical(email)
    name = organization.strip() or email.partition("@")[0]
    passwords.validate(password, context=(email, name, settings.SERVICE_NAME))
    # Hashed in both cases: the response for a taken address must not be faster.
    encoded = passwords.hash_password(password)
    if find(email) is not None:
        raise EmailTaken(TAKEN)
    try:
        with transaction.atomic():
            user = create_account(request, email, encoded, name=name)
            mailbox_proofs.put(user, user.email, now=now)
            environment = environments.find(user.organization_id, "live")
            attempt = SignInAttempt(
                user, environment, method=SignInMethod.SIGNUP, amr=["pwd"], now=now
            )
            return signin.finish(request, attempt)
    except IntegrityError as exc:
        # The unique index: two concurrent sign-ups of one address.
        raise EmailTaken(TAKEN) from exc


def _check_rate_limit(address: str, now: datetime) -> None:
    limit = settings.ACCOUNTS.signups_per_hour
    rate_limits.enforce(
        "signup",
        subscriber_network(address),
        limit=limit,
        window=WINDOW,
        error=TooManyAttempts,
        now=now,
    )


def create_account(
    request: PlatformRequest, email: str, encoded_password: str, *, name: str = ""
) -> User:
    """Create an organization and return its first admin; call inside a transaction.

    name: of the organization; '' derives it from the address.
    Raises IntegrityError if the address has an account.
    """
    organization = environments.create_organization(name or email.partition("@")[0])
    user = add_user(organization, email, encoded_password, roles=["admin"])
    trail.record_user(request, AccountTag.ORGANIZATION_CREATE, user)
    return user


def add_user(
    organization: Organization, email: str, encoded_password: str, *, roles: list[str]
) -> User:
    """Add a user to an organization. Raises IntegrityError if the address has an account."""
    user = User(organization=organization, email=email, password=encoded_password, roles=roles)
    user.save(force_insert=True)
    events.emit(
        organization.pk, "member.added", {"user_id": str(user.pk), "email": email, "roles": roles}
    )
    return user


def canonical(email: str) -> str:
    """Return an address in its stored form: trimmed, the domain in lower case."""
    local, _, domain = email.strip().rpartition("@")
    return f"{local}@{domain.lower()}"
