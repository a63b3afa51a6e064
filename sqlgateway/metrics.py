"""Prometheus metrics of SQL: requests, and their admission."""

import collections
from collections.abc import Iterator
from typing import Final, NamedTuple

from prometheus_client import Counter, Gauge

from common.metrics.publishing import BatchHistogram, ObservationBatch

REQUESTS: Final = Counter(
    "zonal_sql_requests_total",
    "SQL requests that ran, by outcome: success, replayed or the error's code.",
    ["outcome"],
)
SECONDS: Final = BatchHistogram(
    "zonal_sql_seconds",
    "Time that SQL requests took, without their wait for a turn.",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300),
)
ROWS: Final = Counter("zonal_sql_rows_total", "Rows that SQL requests returned or changed.")
BYTES: Final = Counter("zonal_sql_bytes_total", "Bytes of the rows that SQL requests returned.")
RUNNING: Final = Gauge(
    "zonal_sql_running", "SQL requests that hold a slot.", multiprocess_mode="livesum"
)
WAITING: Final = Gauge(
    "zonal_sql_waiting", "SQL requests that wait for a slot.", multiprocess_mode="livesum"
)
REFUSED: Final = Counter(
    "zonal_sql_refused_total", "SQL requests that got no slot, by the error's code.", ["reason"]
)


class _Request(NamedTuple):
    outcome: str
    elapsed_s: float
    rows: int
    size_bytes: int


def observe(outcome: str, elapsed_s: float, *, rows: int, size_bytes: int) -> None:
    """Count one request that had a slot."""
    _BATCH.add(_Request(outcome, elapsed_s, rows, size_bytes))


def _count(observations: Iterator[_Request]) -> None:
    requests = list(observations)
    # Outcomes are codes of error classes, so there are few of them.
    for outcome, number in collections.Counter(request.outcome for request in requests).items():
        REQUESTS.labels(outcome).inc(number)
    SECONDS.observe_all([request.elapsed_s for request in requests])
    ROWS.inc(sum(request.rows for request in requests))
    BYTES.inc(sum(request.size_bytes for request in requests))


_BATCH: Final = ObservationBatch(_count)
