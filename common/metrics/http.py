"""Metrics of HTTP requests: by route, in total for the dashboard, and by organization."""

from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from prometheus_client import Counter

from common.metrics.http_tally import TALLY
from common.metrics.organization_tally import ORGANIZATIONS
from common.metrics.publishing import BatchHistogram, ObservationBatch

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

REQUESTS: Final = Counter(
    "zonal_requests_total", "Requests answered.", ["method", "route", "status"]
)
LATENCY: Final = BatchHistogram(
    "zonal_request_seconds",
    "Time to answer.",
    ["route"],
    buckets=(0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30),
)


class _Answer(NamedTuple):
    """The labels of a request. organization_id: None without a principal."""

    method: str
    route: str
    status: int
    organization_id: int | None


def observe_request(
    method: str, route: str, status: int, elapsed_s: float, *, organization_id: int | None
) -> None:
    """Count one request. organization_id: None without a principal."""
    _BATCH.add((_Answer(method, route, status, organization_id), elapsed_s))


def _count(observations: Iterator[tuple[_Answer, float]]) -> None:
    times: defaultdict[_Answer, list[float]] = defaultdict(list)
    for answer, elapsed_s in observations:
        times[answer].append(elapsed_s)
    for answer, elapsed in times.items():
        _count_alike(answer, elapsed)


def _count_alike(answer: _Answer, elapsed: list[float]) -> None:
    # Unknown methods count as OTHER, so that the number of labels is limited.
    method = answer.method if answer.method in METHODS else "OTHER"
    count, latency = _labelled(method, answer.route, answer.status)
    count.inc(len(elapsed))
    latency.observe_all(elapsed)
    TALLY.count(answer.status, elapsed)
    if answer.organization_id is not None:
        ORGANIZATIONS.count(answer.organization_id, answer.status, len(elapsed))


@lru_cache(maxsize=2048)
def _labelled(method: str, route: str, status: int) -> tuple[Counter, BatchHistogram]:
    # Cached, because the library takes a lock and checks the labels at each call.
    return REQUESTS.labels(method, route, str(status)), LATENCY.labels(route)


_BATCH: Final = ObservationBatch(_count)
