"""API keys: created by an admin for a program; revoked by any admin, or with their creator.

Locks are taken in the order of organizations/members.py: organization, user.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db.models import QuerySet
from django.utils import timezone

from accounts import notices
from accounts.api_keys import secret
from accounts.errors import ApiKeyNotFound, ApiKeysMadeTooOften, SessionRevoked, TooManyApiKeys
from accounts.models import ApiKey, Session, User
from common import rate_limits
from common.errors import FieldError, InvalidRequest
from common.permissions import Role, scopes_of
from common.principals import Principal
from common.scoping import across_environments
from environments.models import Organization

DEFAULT_DAYS: Final = 90
MAX_DAYS: Final = 365
# Of one organization, at a time and over all environments.
KEYS_PER_ORGANIZATION: Final = 100
KEYS_PER_DAY: Final = 100
DAY: Final = timedelta(days=1)
# Expired and revoked keys stay listed this long.
KEEP_ENDED: Final = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class NewApiKey:
    """The key to create. scopes: None means all scopes of the role."""

    name: str
    role: Role
    scopes: Sequence[str] | None = None
    expires_in_days: int = DEFAULT_DAYS


def check_rate_limit(organization_id: int, *, now: datetime) -> None:
    """Count one new key against the daily cap, outside a transaction that may be rolled back.

    Raises ApiKeysMadeTooOften (429).
    """
    cap = KEYS_PER_DAY
    rate_limits.enforce(
        "api key", str(organization_id), limit=cap, window=DAY, error=ApiKeysMadeTooOften, now=now
    )


def create(principal: Principal, wanted: NewApiKey, *, now: datetime) -> ApiKey:
    """Create a key for the caller's environment; return it with its text, which is not stored.

    Call inside a transaction. Its creator gets a mail. Raises InvalidRequest (400) for a scope
    above the role, TooManyApiKeys (409), SessionRevoked (401) for a creator who was demoted or
    signed out in the meantime.
    """
    scopes = _scopes(wanted)
    creator = _lock_creator(principal)
    _check_limit(principal.organization_id, now)
    text = secret.new(principal.environment_id)
    key: ApiKey = ApiKey.objects.create(
        organization_id=principal.organization_id,
        environment_id=principal.environment_pk,
        creator=creator,
        name=wanted.name,
        hint=secret.hint(text),
        digest=secret.digest(text),
        role=wanted.role,
        scopes=scopes,
        created_at=now,
        expires_at=now + timedelta(days=wanted.expires_in_days),
    )
    notices.notify(
        creator,
        "api_key_created",
        name=wanted.name,
        environment=principal.environment_name,
        role=wanted.role,
    )
    key.text = text
    return key


def revoke(rows: QuerySet[ApiKey], key_id: str, *, now: datetime) -> ApiKey:
    """Revoke one of these keys, from its next request on; safe to repeat.

    Call inside a transaction. Raises ApiKeyNotFound (404).
    """
    try:
        key: ApiKey | None = rows.select_for_update(of=("self",)).filter(pk=UUID(key_id)).first()
    except ValueError:
        raise ApiKeyNotFound from None
    if key is None:
        raise ApiKeyNotFound
    if key.revoked_at is None:
        key.revoked_at, key.revoke_reason = now, "revoked"
        key.save(update_fields=["revoked_at", "revoke_reason"])
    return key


def revoke_created_by(creator: User, *, reason: str, now: datetime) -> int:
    """Revoke the keys that a user created; return their number.

    A creator who becomes an admin again has to create new keys.
    """
    mine = across_environments(ApiKey).filter(creator=creator)
    return _end(mine, reason, now)


def revoke_all(rows: QuerySet[ApiKey], *, now: datetime) -> int:
    """Revoke these keys for an operator's command; return how many were active."""
    return _end(rows, "operator", now)


def on_environment_deleted(environment_pk: int) -> None:
    """Revoke the keys of an environment (a lifecycle hook)."""
    keys = across_environments(ApiKey).filter(environment_id=environment_pk)
    _end(keys, "environment_deleted", timezone.now())


def delete_old(*, now: datetime) -> int:
    """Delete keys that ended long ago; return their number."""
    ended = now - KEEP_ENDED
    keys = ApiKey.objects.all()
    number: int = keys.filter(expires_at__lt=ended).delete()[0]
    return number + keys.filter(revoked_at__lt=ended).delete()[0]


def _end(rows: QuerySet[ApiKey], reason: str, now: datetime) -> int:
    return rows.filter(revoked_at=None).update(revoked_at=now, revoke_reason=reason)


def _scopes(wanted: NewApiKey) -> list[str]:
    possible = scopes_of(wanted.role)
    if wanted.scopes is None:
        return [*possible]
    # A scope to write includes reading: clients find what they change first.
    asked = {*wanted.scopes, *(scope.replace(":write", ":read") for scope in wanted.scopes)}
    wrong = [scope for scope in wanted.scopes if scope not in possible]
    if wrong:
        said = f"The role {wanted.role} cannot have {', '.join(wrong)}."
        raise InvalidRequest(fields=[FieldError("scopes", "above_role", said)])
    return [scope for scope in possible if scope in asked]


def _lock_creator(principal: Principal) -> User:
    """Return the caller's current row, locked; a demotion takes the same locks."""
    organizations = Organization.objects.select_for_update(no_key=True)
    organizations.only("pk").get(pk=principal.organization_id)
    users = User.objects.all()
    creator: User | None = (
        users.select_for_update(no_key=True).filter(pk=principal.own_id, is_active=True).first()
    )
    session = Session.objects.filter(pk=principal.session_id, ended_at=None)
    if creator is None or "admin" not in (*creator.roles, *creator.derived_roles):
        raise SessionRevoked
    if not session.exists():
        raise SessionRevoked
    return creator


def _check_limit(organization_id: int, now: datetime) -> None:
    live = across_environments(ApiKey).filter(
        organization_id=organization_id, revoked_at=None, expires_at__gt=now
    )
    if live.count() >= KEYS_PER_ORGANIZATION:
        raise TooManyApiKeys("Revoke some, or wait until they expire.")
