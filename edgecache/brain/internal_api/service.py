"""``PUT /v1/organizations/{id}/service``: may other operators' nodes serve its objects?"""

from edgecache.brain.internal_api.buckets import number
from edgecache.brain.json_api import JsonCall, JsonResponse, Route
from edgecache.brain.nodes.registry import Nodes
from edgecache.protocol.fields import Fields


def routes(nodes: Nodes) -> list[Route]:
    """Return the route."""

    async def decide(call: JsonCall) -> JsonResponse:
        body = Fields(call.body)
        is_stopped = body.boolean("is_stopped")
        version = body.integer("version", minimum=1)
        body.finish()
        await nodes.stopped.decide(number(call), version, is_stopped=is_stopped)
        return JsonResponse(status=204)

    return [Route("PUT", "/v1/organizations/{id}/service", decide)]
