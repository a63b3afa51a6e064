"""``/v1/status``, ``/v1/metrics``, ``/v1/nodes/{id}/metrics``, ``/v1/usage`` and ``/metrics``."""

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

    What this brain has counted up to now is included; others write theirs every ten seconds.
    """
    statistics = dependencies.statistics

    async def status(_call: JsonCall) -> JsonResponse:
        return JsonResponse(await statistics.status())

    async def cluster(_call: JsonCall) -> JsonResponse:
        return JsonResponse(await statistics.cluster())

    async def of_node(call: JsonCall) -> JsonResponse:
        return JsonResponse(await statistics.of_node(await find(dependencies.database, call)))

    return [
        Route("GET", "/v1/status", status),
        Route("GET", "/v1/metrics", cluster),
        Route("GET", "/v1/nodes/{node_id}/metrics", of_node),
        _usage(dependencies),
    ]


def scrape_route(dependencies: InternalApiDependencies) -> Route:
    """Return ``GET /metrics``: what this brain alone has served."""

    async def scrape(_call: JsonCall) -> JsonResponse:
        text = prometheus.text(dependencies.nodes, dependencies.meters, dependencies.brain_id)
        return JsonResponse(text, content_type=prometheus.CONTENT_TYPE)

    return Route("GET", "/metrics", scrape, is_local=True)


def _usage(dependencies: InternalApiDependencies) -> Route:
    async def usage(call: JsonCall) -> JsonResponse:
        query = FieldReader(call.query, is_text=True)
        after = query.integer("after", default=0)
        limit = query.integer("limit", default=USAGE_PAGE)
        cut = query.text("cut", limit=3, default="all")
        query.finish()
        await dependencies.meters.flush()
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
