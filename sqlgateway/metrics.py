"""Prometheus metrics of SQL: requests, and their admission in all web processes."""

from functools import lru_cache
from typing import Final

from prometheus_client import Counter, Gauge, Histogram

REQUESTS: Final = Counter(
    "zonal_sql_requests_total",
    "SQL requests that ran, by outcome: success, replayed or the error's code.",
    ["outcome"],
)
SECONDS: Final = Histogram(
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


def observe(outcome: str, elapsed_s: float, *, rows: int, size_bytes: int) -> None:
    """Count one request that had a slot."""
    _of_outcome(outcome).inc()
    SECONDS.observe(elapsed_s)
    if rows:
        ROWS.inc(rows)
    if size_bytes:
        BYTES.inc(size_bytes)


# Outcomes are codes of the errors' classes, so there are few.
@lru_cache(maxsize=256)
def _of_outcome(outcome: str) -> Counter:
    return REQUESTS.labels(outcome)
