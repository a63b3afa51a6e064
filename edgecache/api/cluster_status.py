"""Status and metrics of the whole cache; zeros while it is switched off."""

from datetime import UTC, datetime
from typing import Any, Final

from edgecache.api import client
from edgecache.api.errors import CacheUnavailable

NO_STATUS: Final[dict[str, Any]] = {
    "brain_healthy": False,
    "total_nodes": 0,
    "online_nodes": 0,
    "total_cache_bytes": 0,
    "used_cache_bytes": 0,
    "hit_ratio": 0.0,
}
COUNTERS: Final = (
    "total_hits",
    "total_misses",
    "bytes_served",
    "bytes_stored",
    "bytes_capacity",
    "object_count",
    "evictions",
    "active_nodes",
)
RATES: Final = ("hit_ratio", "avg_latency_ms", "p95_latency_ms", "p99_latency_ms")


def no_metrics() -> dict[str, Any]:
    """Return the metrics of a cache that is switched off."""
    return {
        **dict.fromkeys(COUNTERS, 0),
        **dict.fromkeys(RATES, 0.0),
        "collected_at": datetime.now(UTC).isoformat(),
    }


def status() -> dict[str, Any]:
    """Return the cache's status.

    Raises CacheUnavailable; its problem document has the status fields as well.
    """
    try:
        answer: dict[str, Any] = client.call("GET", "/v1/status", disabled=NO_STATUS)
    except CacheUnavailable as exc:
        exc.extra = dict(NO_STATUS)
        raise
    return answer


def cluster_metrics() -> dict[str, Any]:
    """Return the metrics of the whole cache. Raises CacheUnavailable."""
    answer: dict[str, Any] = client.call("GET", "/v1/metrics", disabled=no_metrics())
    return answer
