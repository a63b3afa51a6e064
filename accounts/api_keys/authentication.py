"""Resolve an API key into a principal, with one query."""

from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import F, Q, QuerySet
from django.utils import timezone

from accounts.api_keys import secret
from accounts.errors import ApiKeyExpired, ApiKeyInvalid
from accounts.models import ApiKey
from common.database.prepared import PreparedQuery, parameter
from common.principals import PlatformRequest, Principal
from common.scoping import unscoped
from common.web.addresses import client_address

# Minimum time between two writes of the last use.
NOTE_EVERY: Final = timedelta(minutes=1)


@unscoped("the key says whose scope it is")
def _rows() -> QuerySet[ApiKey, dict[str, Any]]:
    """Return the key. Revoking it, or removing its creator or environment, takes effect now.

    Only admins have keys, so the keys of a creator who is no longer an admin are invalid. An
    account without an address may only add one.
    """
    is_admin = Q(creator__roles__contains=["admin"]) | Q(creator__derived_roles__contains=["admin"])
    keys = ApiKey.objects.filter(
        is_admin,
        digest=parameter(1, "text"),
        revoked_at=None,
        creator__organization_id=F("organization_id"),
        creator__is_active=True,
        environment__organization_id=F("organization_id"),
        environment__deleted_at=None,
    )
    return keys.exclude(creator__email="").values(
        "id",
        "name",
        "role",
        "scopes",
        "expires_at",
        "last_used_at",
        "organization_id",
        "environment_id",
        organization_name=F("organization__name"),
        slug=F("environment__slug"),
        environment_name=F("environment__name"),
    )


_QUERY: Final = PreparedQuery(_rows)


def authenticate(request: PlatformRequest, token: str) -> Principal | None:
    """Return the principal of an API key, or None.

    None means another kind of token. A mistyped key costs no query, any other key one, and once a
    minute an UPDATE that records the use.
    Raises ApiKeyInvalid, ApiKeyExpired.
    """
    if not token.startswith(secret.MARK):
        return None
    if not secret.is_well_formed(token):
        raise ApiKeyInvalid
    row = _QUERY.row(secret.digest(token).encode())
    if row is None:
        raise ApiKeyInvalid
    now = timezone.now()
    expires_at = datetime.fromisoformat(row["expires_at"])
    if now >= expires_at:
        raise ApiKeyExpired
    _note_use(row, request, now)
    return Principal(
        kind="key",
        user_id=None,
        email=None,
        organization_id=row["organization_id"],
        organization_name=row["organization_name"],
        environment_pk=row["environment_id"],
        environment_id=row["slug"],
        environment_name=row["environment_name"],
        roles=(row["role"],),
        labels=(),
        session_id=None,
        aal=1,
        amr=("key",),
        auth_time=None,
        access_expires_at=int(expires_at.timestamp()),
        key_id=UUID(row["id"]),
        key_name=row["name"],
        scopes=frozenset(row["scopes"]),
    )


def _note_use(row: dict[str, Any], request: PlatformRequest, now: datetime) -> None:
    latest, since = row["last_used_at"], now - NOTE_EVERY
    if latest is not None and datetime.fromisoformat(latest) > since:
        return
    # Of concurrent requests one writes: each checks again once it has locked the row.
    is_due = Q(last_used_at=None) | Q(last_used_at__lte=since)
    ApiKey.objects.filter(is_due, pk=row["id"]).update(
        last_used_at=now, last_used_address=client_address(request)
    )
