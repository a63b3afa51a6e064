"""``PUT /v1/operators/{id}/networks``: the networks of recent sessions of an operator's members."""

from edgecache.brain.internal_api.buckets import number
from edgecache.brain.json_api import JsonCall, JsonResponse, Route
from edgecache.brain.metering.operator_networks import MOST, OperatorNetworks
from edgecache.brain.metering.own_reads import prefixes_of
from edgecache.protocol.fields import Fields

NETWORK_CHARS = 43


def routes(networks: OperatorNetworks) -> list[Route]:
    """Return the route."""

    async def replace(call: JsonCall) -> JsonResponse:
        body = Fields(call.body)
        given = body.texts("networks", limit=MOST, length=NETWORK_CHARS)
        body.finish()
        await networks.replace(number(call), prefixes_of(given))
        return JsonResponse(status=204)

    return [Route("PUT", "/v1/operators/{id}/networks", replace)]
