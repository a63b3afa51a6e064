"""Metrics of HTTP requests, by route."""

from functools import lru_cache
from typing import Final

from prometheus_client import Counter, Histogram

from platform_site.lib.metrics.http_tally import TALLY

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

REQUESTS: Final = Counter(
    "zonal_requests_total", "Requests answered.", ["method", "route", "status"]
)
LATENCY: Final = Histogram(
    "zonal_request_seconds",
    "Time to answer.",
    ["route"],
    buckets=(0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30),
)


def observe_request(method: str, route: str, status: int, elapsed_s: float) -> None:
    """Count one request; an unknown method counts as OTHER, so that labels stay few."""
    count, latency = _labelled(method if method in METHODS else "OTHER", route, status)
    count.inc()
    latency.observe(elapsed_s)
    TALLY.count(status, elapsed_s)


@lru_cache(maxsize=2048)
def _labelled(method: str, route: str, status: int) -> tuple[Counter, Histogram]:
    # The library takes a lock and checks the labels each time that it is asked for these.
    return REQUESTS.labels(method, route, str(status)), LATENCY.labels(route)
