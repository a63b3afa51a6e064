"""Changing the password in a session."""

from datetime import datetime

from django.conf import settings
from django.db import transaction

from accounts import account_lifecycle, notices, passwords
from accounts.audit_tags import AccountTag
from accounts.errors import InvalidCredentials
from accounts.models import User
from accounts.sessions import sessions
from accounts.sessions.sessions import request_source
from accounts.signin import credentials, mailbox_proofs
from audit import trail
from common.errors import InvalidRequest
from common.principals import PlatformRequest, Principal


def has_one(principal: Principal) -> bool:
    """True if the caller's account has a password."""
    user: User = User.objects.only("password").get(pk=principal.own_id)
    return user.has_usable_password()


def change(
    request: PlatformRequest,
    principal: Principal,
    *,
    current_password: str,
    password: str,
    ends_others: bool,
    now: datetime,
) -> int:
    """Set a new password; return how many other sessions ended.

    current_password: ignored if the account has none (it uses other sign-in methods).
    ends_others: also end the other sessions. Trusted devices, pending sign-ins and a pending change
    of address always end. Raises InvalidRequest (400) for a weak or a missing password,
    InvalidCredentials (401) under the login's own limits, TooManyAttempts (429), HashingBusy (503).
    """
    rows = User.objects.select_related("organization")
    user: User = rows.get(pk=principal.own_id)
    if user.has_usable_password():
        user = _prove(request, user, current_password, now)
    context = (user.email, principal.organization_name, settings.SERVICE_NAME)
    passwords.validate(password, context=context)
    # Before taking the lock, because hashing is slow.
    encoded = passwords.hash_password(password)
    with transaction.atomic():
        locked = _lock_unchanged(user)
        locked.password = encoded
        locked.save(update_fields=["password"])
        mailbox_proofs.delete_change(locked)
        account_lifecycle.run_hooks("trust_ended", locked.pk)
        ended = _end_others(principal, now) if ends_others else 0
        source = request_source(request)
        notices.notify(locked, "password_changed", address=source.address, agent=source.agent[:300])
        trail.record_request(request, AccountTag.PASSWORD_UPDATE, ended=ended)
    return ended


def _prove(request: PlatformRequest, user: User, current_password: str, now: datetime) -> User:
    if not current_password:
        message = "The password that you have now."
        raise InvalidRequest.for_field("current_password", message, code="required")
    source = request_source(request)
    try:
        return credentials.verify(user.email, current_password, source=source, now=now)
    except InvalidCredentials:
        trail.record_request(request, AccountTag.PASSWORD_UPDATE, outcome="refused")
        raise


def _lock_unchanged(user: User) -> User:
    """Lock the user and check that the password is still the verified one.

    Raises InvalidCredentials.
    """
    rows = User.objects.select_for_update(no_key=True)
    locked: User | None = rows.filter(pk=user.pk, password=user.password, is_active=True).first()
    if locked is None:
        raise InvalidCredentials
    return locked


def _end_others(principal: Principal, now: datetime) -> int:
    return sessions.end_all_of_user(
        principal.own_id,
        reason="password_changed",
        now=now,
        except_session=principal.session_id,
    )
