"""Resolve an API key into a principal, with one query."""

from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import orjson
from django.db.models import Q
from django.utils import timezone

from accounts.api_keys import secret
from accounts.errors import ApiKeyExpired, ApiKeyInvalid
from accounts.models import ApiKey
from common.database.prepared import PreparedQuery
from common.principals import PlatformRequest, Principal
from common.web.addresses import client_address

# Literal SQL, as for an access token (accounts/sessions/authentication.py). Revoking a key, or
# removing its creator or environment, takes effect on the next request.
_COLUMNS: Final = {
    "id": "k.id",
    "name": "k.name",
    "role": "k.role",
    "scopes": "k.scopes",
    "expires_at": "extract(epoch FROM k.expires_at)::float8",
    "last_used_at": "extract(epoch FROM k.last_used_at)::float8",
    "organization_id": "o.id",
    "organization_name": "o.name",
    "environment_pk": "e.id",
    "slug": "e.slug",
    "environment_name": "e.name",
}
# Only admins have keys, so the keys of a creator who is no longer an admin are invalid. An account
# without an address may only add one.
_QUERY: Final = PreparedQuery(
    f"""
    SELECT json_build_array({", ".join(_COLUMNS.values())})::text
    FROM accounts_apikey k
    JOIN accounts_user u ON u.id = k.maker_id AND u.organization_id = k.organization_id
    JOIN environments_organization o ON o.id = k.organization_id
    JOIN environments_environment e
        ON e.id = k.environment_id AND e.organization_id = k.organization_id
    WHERE k.digest = $1 AND k.revoked_at IS NULL AND e.deleted_at IS NULL
        AND u.is_active AND u.email <> '' AND 'admin' = ANY (u.roles || u.derived_roles)
    """,  # noqa: S608 - expressions from the literal table above
    types=("text",),
)
# Minimum time between two writes of the last use.
NOTE_EVERY: Final = timedelta(minutes=1)


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
    found = _QUERY.value(secret.digest(token).encode())
    if found is None:
        raise ApiKeyInvalid
    row: dict[str, Any] = dict(zip(_COLUMNS, orjson.loads(found), strict=True))
    now = timezone.now()
    if now.timestamp() >= row["expires_at"]:
        raise ApiKeyExpired
    _note_use(row, request, now)
    return Principal(
        kind="key",
        user_id=None,
        email=None,
        organization_id=row["organization_id"],
        organization_name=row["organization_name"],
        environment_pk=row["environment_pk"],
        environment_id=row["slug"],
        environment_name=row["environment_name"],
        roles=(row["role"],),
        labels=(),
        session_id=None,
        aal=1,
        amr=("key",),
        auth_time=None,
        access_expires_at=int(row["expires_at"]),
        key_id=UUID(row["id"]),
        key_name=row["name"],
        scopes=frozenset(row["scopes"]),
    )


def _note_use(row: dict[str, Any], request: PlatformRequest, now: datetime) -> None:
    latest, since = row["last_used_at"], now - NOTE_EVERY
    if latest is not None and latest > since.timestamp():
        return
    # Of concurrent requests one writes: each checks again once it has locked the row.
    is_due = Q(last_used_at=None) | Q(last_used_at__lte=since)
    ApiKey.objects.filter(is_due, pk=row["id"]).update(
        last_used_at=now, last_used_address=client_address(request)
    )
