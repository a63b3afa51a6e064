"""Metrics of connections to the control database: the server's count, and each process's pool."""

from collections.abc import Iterator
from typing import Final

from django.db import DEFAULT_DB_ALIAS, connection, connections
from prometheus_client import Gauge
from prometheus_client.core import GaugeMetricFamily

from common.metrics.figures import GaugeGroup, gauge
from common.metrics.publishing import add_publisher

IN_USE: Final = Gauge(
    "zonal_pool_in_use",
    "Connections of ZDB_POOL_SIZE's pools in use.",
    multiprocess_mode="livesum",
)
SIZE: Final = Gauge(
    "zonal_pool_size",
    "Connections that the pools may have; 0 where each thread has its own.",
    multiprocess_mode="livesum",
)
WAITING: Final = Gauge(
    "zonal_pool_waiting",
    "Requests that wait for a connection of a pool.",
    multiprocess_mode="livesum",
)
# Connections of all roles can be counted, but the state is visible for the platform's own role
# only.
OPEN: Final = """
SELECT
    count(*) FILTER (WHERE state = 'active' AND pid <> pg_backend_pid()),
    count(*) FILTER (WHERE state LIKE 'idle in transaction%%'),
    count(*) FILTER (WHERE state = 'idle' OR pid = pg_backend_pid()),
    current_setting('max_connections')::int
FROM pg_stat_activity WHERE datname = current_database() AND usename = current_user
"""


def _publish() -> None:
    """Publish the state of this process's pool, if it has one."""
    database = connections[DEFAULT_DB_ALIAS]
    if not database.settings_dict["OPTIONS"].get("pool"):
        return
    found = database.pool.get_stats()  # type: ignore[attr-defined]  # of PostgreSQL's backend only
    SIZE.set(found["pool_max"])
    IN_USE.set(found["pool_size"] - found["pool_available"])
    WAITING.set(found.get("requests_waiting", 0))


def _read() -> Iterator[GaugeMetricFamily]:
    with connection.cursor() as cursor:
        cursor.execute(OPEN)
        active, in_transaction, idle, most = cursor.fetchone()
    counted = GaugeMetricFamily(
        "zonal_database_connections",
        "The platform's connections to the control database.",
        labels=["state"],
    )
    for state, number in (("active", active), ("in_transaction", in_transaction), ("idle", idle)):
        counted.add_metric([state], number)
    yield counted
    yield gauge("zonal_database_connections_most", "What the server allows for all.", most)


DATABASE: Final = GaugeGroup("database", _read, keep_s=5)
add_publisher(_publish)
