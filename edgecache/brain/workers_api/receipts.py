"""``POST /v1/workers/{id}/receipts``: what a worker served to clients itself."""

import time

from edgecache.brain.json_api.app import JsonCall, JsonResponse, Route
from edgecache.brain.metering.receipts import redeem
from edgecache.brain.nodes.node_rows import NodeRow
from edgecache.brain.workers_api.dependencies import WorkersApiDependencies
from edgecache.protocol.receipts import Receipts


def routes(dependencies: WorkersApiDependencies) -> list[Route]:
    async def receipts(call: JsonCall) -> JsonResponse:
        message = call.read(Receipts)
        node: NodeRow = call.caller
        answer = await redeem(
            dependencies.database,
            dependencies.tickets,
            node.id,
            message.receipts,
            dependencies.creditable_reads.is_creditable,
            now=time.time(),
        )
        return JsonResponse(answer)

    return [Route("POST", "/v1/workers/{node_id}/receipts", receipts)]
