"""The workers' API (:8083): each node authenticates with its own credential."""

import hmac
from uuid import UUID

from edgecache.brain.json_api.app import JsonApi, JsonCall, health_route
from edgecache.brain.json_api.errors import NodeRemoved, NotAuthenticated
from edgecache.brain.nodes import node_rows
from edgecache.brain.nodes.node_rows import NodeRow
from edgecache.brain.workers_api import heartbeats, inventories, jobs, receipts
from edgecache.brain.workers_api.dependencies import WorkersApiDependencies
from edgecache.protocol.credentials import parse_authorization, secret_hash


def workers_api(dependencies: WorkersApiDependencies) -> JsonApi:
    async def authenticate(call: JsonCall) -> NodeRow:
        given = parse_authorization(call.headers.get("authorization", ""))
        if given is None or call.captures.get("node_id") != str(given[0]):
            raise NotAuthenticated
        return await _node(dependencies, given[0], secret_hash(given[1]))

    routes = [
        health_route(dependencies.readiness, dependencies.brain_id),
        *heartbeats.routes(dependencies),
        *inventories.routes(dependencies),
        *jobs.routes(dependencies),
        *receipts.routes(dependencies),
    ]
    return JsonApi(routes, authenticate)


async def _node(dependencies: WorkersApiDependencies, node_id: UUID, digest: bytes) -> NodeRow:
    row = dependencies.nodes.get(node_id) or await node_rows.read_one(
        dependencies.database, node_id
    )
    if row is not None and hmac.compare_digest(row.secret_hash, digest):
        return row
    # Only with the right credential does a response say that the node existed.
    if row is None and await node_rows.is_known(dependencies.database, node_id, digest):
        raise NodeRemoved
    raise NotAuthenticated
