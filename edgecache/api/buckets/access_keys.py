"""Access keys of an environment, with which S3 clients sign."""

import contextlib
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from accounts.audit import trail
from edgecache.api import client
from edgecache.api.audit_tags import CacheTag
from edgecache.api.client import Row, tenant
from edgecache.api.errors import AccessKeyNotFound
from environments.models import Environment
from platform_site.lib.principals import Scope

# Anything else must not become part of a path of the brain.
KEY_ID: Final = re.compile(r"[A-Z0-9]{4,32}")


def all_of(scope: Scope) -> list[Row]:
    """Return the environment's access keys, without their secrets."""
    return client.list_rows(scope, "access-keys")


def create(scope: Scope, body: Mapping[str, Any]) -> Row:
    """Create a key. Only this answer holds ``secret_access_key``. Raises CacheLimitReached."""
    created: Row = client.call("POST", "/v1/access-keys", query=tenant(scope), body=body)
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


def revoke_those_of(organization_id: int, maker_id: UUID, *, until: datetime) -> None:
    """Revoke the access keys that a user made until a moment; safe to repeat.

    Only the audit trail knows who made a key.
    """
    events = trail.of_organization(organization_id).filter(
        tag=CacheTag.ACCESS_KEY_CREATE, actor_id=maker_id, at__lte=until
    )
    made = set(events.values_list("data__access_key", flat=True))
    for place in Environment.scoped.within_organization(organization_id) if made else ():
        scope = Scope(organization_id, place.pk)
        for key in all_of(scope):
            if key["access_key_id"] in made:
                with contextlib.suppress(AccessKeyNotFound):
                    revoke(scope, key["access_key_id"])
