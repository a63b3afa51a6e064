"""What the cache does when an organization is deleted (settings.LIFECYCLE_HOOKS)."""

import contextlib

from edgecache.api import client, nodes
from edgecache.api.errors import NodeNotFound


def on_organization_erased(organization_id: int) -> None:
    """Deregister the organization's nodes; their objects are moved in the background.

    Raises CacheUnavailable, so that the deletion goes on later.
    """
    for node in nodes.all_seen_by(organization_id):
        if node["is_own"]:
            with contextlib.suppress(NodeNotFound):
                nodes.discard(node["node_id"])
    if client.is_enabled():
        # The networks that its members signed in from.
        client.call("PUT", f"/v1/operators/{organization_id}/networks", body={"networks": []})
