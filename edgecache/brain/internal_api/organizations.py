"""``PUT /v1/organizations/{id}/service`` and ``PUT /v1/operators/{id}/networks``.

service: may other operators' nodes serve an organization's objects? networks: of recent sessions of
an operator's members.
"""

from typing import Final

from edgecache.brain.internal_api.buckets import number
from edgecache.brain.json_api.app import JsonCall, JsonResponse, Route
from edgecache.brain.metering.creditable_reads import prefixes_of
from edgecache.brain.metering.operator_networks import MAX_NETWORKS, OperatorNetworks
from edgecache.brain.nodes.known_nodes import KnownNodes
from edgecache.protocol.fields import FieldReader

NETWORK_CHARS: Final = 43


def routes(nodes: KnownNodes, networks: OperatorNetworks) -> list[Route]:
    async def decide(call: JsonCall) -> JsonResponse:
        body = FieldReader(call.body)
        is_stopped = body.boolean("is_stopped")
        version = body.integer("version", minimum=1)
        body.finish()
        await nodes.stopped.decide(number(call), version, is_stopped=is_stopped)
        return JsonResponse(status=204)

    async def replace(call: JsonCall) -> JsonResponse:
        body = FieldReader(call.body)
        given = body.texts("networks", limit=MAX_NETWORKS, length=NETWORK_CHARS)
        body.finish()
        await networks.replace(number(call), prefixes_of(given))
        return JsonResponse(status=204)

    return [
        Route("PUT", "/v1/organizations/{id}/service", decide),
        Route("PUT", "/v1/operators/{id}/networks", replace),
    ]
