"""Access keys of an environment, with which S3 clients sign."""

import contextlib
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from accounts import notices
from accounts.errors import SessionRevoked
from accounts.models import User
from audit import trail
from common.principals import Principal, Scope
from edgecache.api import client
from edgecache.api.audit_tags import CacheTag
from edgecache.api.client import Row, tenant
from edgecache.api.errors import AccessKeyNotFound
from organizations.created import is_admin

# Anything else must not become part of a path of the brain.
KEY_ID: Final = re.compile(r"[A-Z0-9]{4,32}")


def all_of(scope: Scope) -> list[Row]:
    """Return the environment's access keys, without their secrets."""
    return client.list_rows(scope, "access-keys")


def create(principal: Principal, body: Mapping[str, Any]) -> Row:
    """Create a key. Only this answer holds ``secret_access_key``. Its creator gets a mail.

    Raises CacheLimitReached, and SessionRevoked (401) for a creator who was demoted meanwhile.
    """
    query = tenant(principal.scope)
    created: Row = client.call(
        "POST", "/v1/access-keys", query=query, body={**body, **client.creator(principal)}
    )
    if principal.user_id is None:
        return created
    user = _admin(principal.organization_id, principal.user_id)
    if user is None:
        # The demotion may have looked for the creator's keys before this one was there.
        revoke(principal.scope, created["access_key_id"])
        raise SessionRevoked
    notices.notify(
        user,
        "access_key_created",
        name=created["label"] or created["access_key_id"],
        environment=principal.environment_name,
        access=created["access"],
    )
    return created


def revoke(scope: Scope, key_id: str) -> None:
    """Revoke a key immediately on every brain. Raises AccessKeyNotFound."""
    if not KEY_ID.fullmatch(key_id):
        raise AccessKeyNotFound
    client.call("DELETE", f"/v1/access-keys/{key_id}", query=tenant(scope))


def revoke_all(scope: Scope) -> None:
    """Revoke every access key of the environment; safe to repeat."""
    for key in all_of(scope):
        with contextlib.suppress(AccessKeyNotFound):
            revoke(scope, key["access_key_id"])


def revoke_created_by(organization_id: int, user_id: UUID, *, until: datetime) -> None:
    """Revoke the keys that a user created, because it stopped being an admin; safe to repeat.

    until: that moment. Later keys stay if the user is an admin again. Raises CacheUnavailable.
    """
    is_again = _admin(organization_id, user_id) is not None
    answer = client.call(
        "DELETE",
        f"/v1/organizations/{organization_id}/creators/{user_id}/access-keys",
        query={"until": until.isoformat()} if is_again else {},
        disabled={"revoked": []},
    )
    for key_id in answer["revoked"]:
        trail.add(
            None,
            CacheTag.SYSTEM_ACCESS_KEY_DELETE,
            organization_id=organization_id,
            data={"access_key": key_id, "creator": str(user_id)},
        )


def _admin(organization_id: int, user_id: UUID) -> User | None:
    """Return the user's current row if it acts as admin and has not lost its address."""
    users = User.objects.filter(organization_id=organization_id)
    user: User | None = users.filter(pk=user_id).first()
    return user if user is not None and user.email and is_admin(user) else None
