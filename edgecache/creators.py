"""What a member created in the cache: access keys, which end with it, origins and nodes."""

from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from accounts.models import User
from common.scoping import within_organization
from edgecache import tasks
from edgecache.api import access_keys, client
from edgecache.api.errors import CacheUnavailable
from environments.models import Environment
from organizations.created import Created, Item


def created_by(member: User) -> Created:
    """Return a member's access keys, origins and nodes."""
    path = f"/v1/organizations/{member.organization_id}/creators/{member.pk}"
    try:
        found = client.call("GET", path, disabled={"access_keys": [], "origins": [], "nodes": []})
    except CacheUnavailable:
        return Created(is_complete=False)
    rows = Environment.objects.filter(organization_id=member.organization_id)
    environments = dict(rows.values_list("pk", "slug"))

    def items(kind: str, listed: list[dict[str, Any]]) -> list[Item]:
        return [
            Item(kind, row["id"], row["name"], environments.get(row["environment_pk"]))
            for row in listed
        ]

    return Created(
        items("access_key", found["access_keys"]),
        [*items("origin", found["origins"]), *items("node", found["nodes"])],
    )


def on_admin_ended(user_id: UUID) -> None:
    """Revoke the access keys that a user created, when the caller's transaction commits.

    A job does so if the brain cannot be reached then.
    """
    user = User.objects.only("organization_id").get(pk=user_id)
    until = timezone.now()
    tasks.revoke_keys_created_by.defer(
        organization_id=user.organization_id, user_id=str(user_id), until=until.isoformat()
    )
    revoke = partial(_try_to_revoke, user.organization_id, user_id, until)
    transaction.on_commit(revoke, robust=True)


def _try_to_revoke(organization_id: int, user_id: UUID, until: datetime) -> None:
    # After the commit the scope is the caller's again.
    with suppress(CacheUnavailable), within_organization(organization_id):
        access_keys.revoke_created_by(organization_id, user_id, until=until)
