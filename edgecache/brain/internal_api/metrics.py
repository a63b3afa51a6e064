"""``/v1/status``, ``/v1/metrics``, ``/v1/nodes/{id}/metrics``, ``/v1/usage`` and ``/metrics``."""

from collections.abc import Sequence
from typing import Any, Final

from edgecache.brain.db.database import Row
from edgecache.brain.internal_api.dependencies import InternalApiDependencies
from edgecache.brain.internal_api.nodes import find
from edgecache.brain.json_api.app import JsonCall, JsonResponse, Route
from edgecache.brain.metering import prometheus, usage_lines
from edgecache.protocol.fields import Count, Message, Text

USAGE_PAGE: Final = 5000


class UsageQuery(Message, frozen=True):
    """Lines after an id. cut: ``all`` ends the lines of the running hour, too."""

    after: Count = 0
    limit: Count = USAGE_PAGE
    cut: Text = "all"


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
        query = call.read_query(UsageQuery)
        await dependencies.meters.flush()
        rows = await usage_lines.page(
            dependencies.database,
            query.after,
            min(query.limit, USAGE_PAGE),
            cuts_all=query.cut == "all",
        )
        return JsonResponse(_page(rows, query.after))

    return Route("GET", "/v1/usage", usage)


def _page(rows: Sequence[Row], after: int) -> dict[str, Any]:
    # So that the platform notices a page that was cut or altered in transit.
    sums = {name: str(sum(int(getattr(row, name)) for row in rows)) for name in usage_lines.SUMMED}
    lines = [row._asdict() for row in rows]
    return {"lines": lines, "sums": sums, "next": rows[-1].id if rows else after}
