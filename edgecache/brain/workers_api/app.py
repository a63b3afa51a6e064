"""The workers' API (:8083): each node speaks for itself alone, with its own credential."""

import hmac
from typing import TYPE_CHECKING
from uuid import UUID

from edgecache.brain.internal_api import health
from edgecache.brain.json_api import Call, JsonApi
from edgecache.brain.nodes import rows as node_rows
from edgecache.brain.nodes.rows import NodeRow
from edgecache.brain.refusals import NodeRemoved, NotAuthenticated
from edgecache.brain.workers_api import heartbeats, inventories, jobs, receipts
from edgecache.protocol.credentials import parse_authorization, secret_hash

if TYPE_CHECKING:
    from edgecache.brain.app import Brain


def workers_api(brain: "Brain") -> JsonApi:
    """Give the RSGI application."""

    async def authenticate(call: Call) -> NodeRow:
        given = parse_authorization(call.headers.get("authorization", ""))
        if given is None or call.captures.get("node_id") != str(given[0]):
            raise NotAuthenticated
        return await _node(brain, given[0], secret_hash(given[1]))

    routes = [
        *health.routes(brain),
        *heartbeats.routes(brain),
        *inventories.routes(brain),
        *jobs.routes(brain),
        *receipts.routes(brain),
    ]
    return JsonApi(routes, authenticate)


async def _node(brain: "Brain", node_id: UUID, digest: bytes) -> NodeRow:
    row = brain.nodes.get(node_id) or await node_rows.read_one(brain.database, node_id)
    if row is not None and hmac.compare_digest(row.secret_hash, digest):
        return row
    # Only who has the credential learns that the node was there.
    if row is None and await node_rows.is_known(brain.database, node_id, digest):
        raise NodeRemoved
    raise NotAuthenticated
