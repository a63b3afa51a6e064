"""``/v1/status``, ``/v1/metrics``, ``/v1/nodes/{id}/metrics``, ``/v1/usage`` and ``/metrics``."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from edgecache.brain.db.database import Row
from edgecache.brain.internal_api.dependencies import InternalApiDependencies
from edgecache.brain.internal_api.nodes import find
from edgecache.brain.json_api.app import JsonCall, JsonResponse, Route
from edgecache.brain.metering import prometheus, usage_lines
from edgecache.protocol.fields import FieldReader

USAGE_PAGE: Final = 5000


def routes(dependencies: InternalApiDependencies) -> list[Route]:
    """Return the routes.

    What all processes of this brain have counted up to now is included; other brains write theirs
    every ten seconds.
    """
    statistics, siblings = dependencies.statistics, dependencies.siblings

    async def status(_call: JsonCall) -> JsonResponse:
        await siblings.flush_others()
        return JsonResponse(await statistics.status())

    async def cluster(_call: JsonCall) -> JsonResponse:
        await siblings.flush_others()
        return JsonResponse(await statistics.cluster())

    async def of_node(call: JsonCall) -> JsonResponse:
        await siblings.flush_others()
        return JsonResponse(await statistics.of_node(await find(dependencies.database, call)))

    async def scrape(_call: JsonCall) -> JsonResponse:
        text = prometheus.text(dependencies.nodes, await siblings.traffic())
        return JsonResponse(text, content_type=prometheus.CONTENT_TYPE)

    return [
        Route("GET", "/v1/status", status),
        Route("GET", "/v1/metrics", cluster),
        Route("GET", "/v1/nodes/{node_id}/metrics", of_node),
        _usage(dependencies),
        Route("GET", "/metrics", scrape, is_local=True),
    ]


def _usage(dependencies: InternalApiDependencies) -> Route:
    async def usage(call: JsonCall) -> JsonResponse:
        query = FieldReader(call.query, is_text=True)
        after = query.integer("after", default=0)
        limit = query.integer("limit", default=USAGE_PAGE)
        cut = query.text("cut", limit=3, default="all")
        query.finish()
        await asyncio.gather(dependencies.statistics.flush(), dependencies.siblings.flush_others())
        rows = await usage_lines.page(
            dependencies.database, after, min(limit, USAGE_PAGE), cuts_all=cut == "all"
        )
        return JsonResponse(_page(rows, after))

    return Route("GET", "/v1/usage", usage)


def _page(rows: Sequence[Row], after: int) -> dict[str, Any]:
    # So that the platform notices a page that was cut or altered in transit.
    sums = {name: str(sum(int(getattr(row, name)) for row in rows)) for name in usage_lines.SUMMED}
    lines = [row._asdict() for row in rows]
    return {"lines": lines, "sums": sums, "next": rows[-1].id if rows else after}
