"""The workers' API (:8083): each node authenticates with its own credential."""

import hmac
from uuid import UUID

from edgecache.brain.json_api import health
from edgecache.brain.json_api.app import JsonApi, JsonCall
from edgecache.brain.json_api.errors import NodeRemoved, NotAuthenticated
from edgecache.brain.nodes import node_rows
from edgecache.brain.nodes.node_rows import NodeRow
from edgecache.brain.workers_api import heartbeats, inventories, jobs, receipts
from edgecache.brain.workers_api.dependencies import WorkersApiDependencies
from edgecache.protocol.credentials import parse_authorization, secret_hash


def workers_api(parts: WorkersApiDependencies) -> JsonApi:
    async def authenticate(call: JsonCall) -> NodeRow:
        given = parse_authorization(call.headers.get("authorization", ""))
        if given is None or call.captures.get("node_id") != str(given[0]):
            raise NotAuthenticated
        return await _node(parts, given[0], secret_hash(given[1]))

    routes = [
        *health.routes(parts.database, parts.brain_id),
        *heartbeats.routes(parts),
        *inventories.routes(parts),
        *jobs.routes(parts),
        *receipts.routes(parts),
    ]
    return JsonApi(routes, authenticate)


async def _node(parts: WorkersApiDependencies, node_id: UUID, digest: bytes) -> NodeRow:
    row = parts.nodes.get(node_id) or await node_rows.read_one(parts.database, node_id)
    if row is not None and hmac.compare_digest(row.secret_hash, digest):
        return row
    # Only with the right credential does a response say that the node existed.
    if row is None and await node_rows.is_known(parts.database, node_id, digest):
        raise NodeRemoved
    raise NotAuthenticated
