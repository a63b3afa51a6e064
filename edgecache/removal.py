"""What the cache does at the end of an environment or organization (settings.LIFECYCLE_HOOKS)."""

import contextlib

from edgecache import tasks
from edgecache.api import client, nodes
from edgecache.api.errors import NodeNotFound
from environments.models import Environment


def on_environment_deleted(environment_pk: int) -> None:
    """Queue the closing of the environment in the caller's transaction."""
    tasks.close_environment.defer(environment_pk=environment_pk)


def on_environment_dropped(environment_pk: int) -> None:
    """Delete the environment's buckets, keys and objects; safe to repeat.

    Raises CacheUnavailable, so that the job that drops the environment runs again.
    """
    environment = Environment.unscoped.get(pk=environment_pk)  # unscoped: housekeeping, by key
    client.call("DELETE", f"/v1/environments/{environment.organization_id}/{environment_pk}")


def on_organization_erased(organization_id: int) -> None:
    """Deregister the organization's nodes; their objects are moved in the background.

    Raises CacheUnavailable, so that the deletion continues later.
    """
    for node in nodes.all_seen_by(organization_id):
        if node["is_own"]:
            with contextlib.suppress(NodeNotFound):
                nodes.discard(node["node_id"])
    if client.is_enabled():
        # The networks that its members signed in from.
        client.call("PUT", f"/v1/operators/{organization_id}/networks", body={"networks": []})
