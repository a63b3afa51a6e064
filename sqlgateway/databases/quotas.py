"""The quota of disk.

A task measures the databases, and stops the growth of those above the quota.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

import psycopg
import structlog
from django.db import transaction

from outbox.webhooks import events
from sqlgateway.clusters.organization_limits import Quota, quota_of
from sqlgateway.clusters.servers import address_of, administer, said
from sqlgateway.errors import EngineUnavailable
from sqlgateway.hardening import quota_guard
from sqlgateway.models import Cluster, Database, OrganizationQuota

SIZES: Final = (
    "SELECT datname, pg_database_size(oid) FROM pg_database"
    " WHERE datname = ANY(%s) AND datallowconn"
)

log = structlog.get_logger(__name__)


def environment_limit(organization_id: int) -> int:
    """Return how many environments an organization may have."""
    return quota_of(organization_id).environments


def measure_all(*, now: datetime) -> None:
    """Measure every environment's database, and stop or permit its growth.

    A cluster that does not answer is skipped.
    """
    own = {row.organization_id: row for row in OrganizationQuota.objects.all()}
    for cluster in Cluster.objects.exclude(state=Cluster.State.CLOSED):
        rows = Database.objects.filter(cluster=cluster, state=Database.State.ACTIVE)
        databases = list(rows.select_related("cluster"))
        try:
            sizes = _sizes(cluster, [database.dbname for database in databases])
        except (EngineUnavailable, psycopg.Error) as exc:
            log.warning("sql_sizes_unknown", cluster=cluster.pk, said=said(exc))
            continue
        for database in databases:
            if database.dbname in sizes:
                quota = Quota.of(own.get(database.organization_id))
                _apply(database, sizes[database.dbname], quota, now=now)


def measure(database: Database, *, now: datetime) -> None:
    """Measure one database. Raises EngineUnavailable."""
    sizes = _sizes(database.cluster, [database.dbname])
    if database.organization_id is not None and database.dbname in sizes:
        _apply(database, sizes[database.dbname], quota_of(database.organization_id), now=now)


def release(database: Database) -> None:
    """Permit a database to grow until the next measurement, whatever its size.

    Raises EngineUnavailable.
    """
    with administer(address_of(database.cluster), database.dbname) as inside:
        quota_guard.lift(inside)


def size_of(database: Database) -> int:
    """Return the size of a database on disk, in bytes; 0 if it does not exist.

    Raises EngineUnavailable.
    """
    return _sizes(database.cluster, [database.dbname]).get(database.dbname, 0)


def _sizes(cluster: Cluster, names: Iterable[str]) -> dict[str, int]:
    with administer(address_of(cluster)) as connection:
        rows = connection.execute(SIZES, [list(names)]).fetchall()
    return {str(name): int(size) for name, size in rows}


def _apply(database: Database, size_bytes: int, quota: Quota, *, now: datetime) -> None:
    is_over = size_bytes > quota.disk_bytes
    try:
        if is_over:
            # Each time, because transactions that were open may have created tables.
            _guard(database)
        elif database.is_over_quota:
            release(database)
    except (EngineUnavailable, psycopg.Error) as exc:
        # The next measurement tries again; the row keeps the present state.
        log.warning("sql_quota_not_applied", database=database.pk, said=said(exc))
        is_over = database.is_over_quota
    if is_over != database.is_over_quota:
        log.info("sql_quota", database=database.pk, is_over=is_over, size_bytes=size_bytes)
    with transaction.atomic():
        Database.objects.filter(pk=database.pk).update(
            size_bytes=size_bytes, measured_at=now, is_over_quota=is_over
        )
        if is_over and not database.is_over_quota:
            _send_event(database, size_bytes, quota)


def _send_event(database: Database, size_bytes: int, quota: Quota) -> None:
    if database.organization_id is None or database.environment is None:
        return
    data = {
        "quota": "disk",
        "environment": database.environment.slug,
        "size_bytes": size_bytes,
        "limit_bytes": quota.disk_bytes,
    }
    events.emit(database.organization_id, "quota.reached", data)


def _guard(database: Database) -> None:
    with administer(address_of(database.cluster), database.dbname) as inside:
        quota_guard.impose(inside)
