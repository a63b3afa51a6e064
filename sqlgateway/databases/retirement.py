"""Databases that were moved or replaced: kept for a while, then dropped."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import psycopg
import structlog
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from common.scoping import across_environments, unscoped
from sqlgateway.clusters.servers import said
from sqlgateway.databases import tenant_databases
from sqlgateway.errors import EngineUnavailable
from sqlgateway.models import Cluster, Database, RetiredDatabase

# How long the old database is kept after a move or a restore.
KEEP_HOURS: Final = 24

log = structlog.get_logger(__name__)


def retire(database: Database, *, roles: Sequence[str], keep_hours: int = KEEP_HOURS) -> None:
    """Keep the database that the row named before a switch, for a day by default.

    roles: the roles to drop with it; empty if the environment still uses them on this cluster.
    Otherwise they are also added to the environment's databases that are already kept there: only
    the last database to be dropped can drop the roles.
    """
    if roles:
        kept = across_environments(RetiredDatabase).filter(environment_id=database.environment_id)
        kept.filter(cluster=database.cluster).update(roles=list(roles))
    RetiredDatabase.objects.create(
        organization_id=database.organization_id,
        environment_id=database.environment_id,
        cluster=database.cluster,
        dbname=database.dbname,
        roles=list(roles),
        drop_after=timezone.now() + timedelta(hours=keep_hours),
    )


def drop_due(*, now: datetime) -> int:
    """Drop databases that were kept long enough; return their number. Failures are retried."""
    due = RetiredDatabase.objects.filter(drop_after__lte=now)
    return _drop(due)


def drop_of_environment(environment_pk: int) -> None:
    """Drop the kept databases of a deleted environment. Raises EngineUnavailable."""
    rows = RetiredDatabase.objects.filter(environment_id=environment_pk)
    for retired in rows.select_related("cluster"):
        _drop_one(retired)


def drop_at(cluster: Cluster, dbname: str) -> None:
    """Drop a kept database, because its name is needed again. Raises EngineUnavailable."""
    rows = RetiredDatabase.objects.filter(cluster=cluster, dbname=dbname)
    for retired in rows.select_related("cluster"):
        _drop_one(retired)


def _drop(rows: QuerySet[RetiredDatabase]) -> int:
    count = 0
    for retired in rows.select_related("cluster"):
        try:
            _drop_one(retired)
        except (EngineUnavailable, psycopg.Error) as exc:
            log.warning("sql_retired_not_dropped", retired=retired.pk, said=said(exc))
        else:
            count += 1
    return count


def is_kept_at(cluster: Cluster, environment_pk: int | None) -> bool:
    """True if a database of an environment, and therefore its roles, are kept on a cluster."""
    rows = across_environments(RetiredDatabase)
    return rows.filter(cluster=cluster, environment_id=environment_pk).exists()


@unscoped("a database that is in use must never be dropped")
def _drop_one(retired: RetiredDatabase) -> None:
    cluster, roles = retired.cluster, list(retired.roles)

    in_use = Database.objects.filter(cluster=cluster, dbname=retired.dbname)
    with transaction.atomic():
        retired.delete()
        if _is_used_at(cluster, retired.environment_id):
            roles = []
        if not in_use.exists():
            tenant_databases.drop_named(cluster, retired.dbname, roles)


def _is_used_at(cluster: Cluster, environment_pk: int) -> bool:
    """True if an environment needs its roles on a cluster, now or after a move."""
    there = Q(cluster=cluster) | Q(moving_to=cluster)

    rows = Database.objects.filter(there, environment_id=environment_pk)
    return rows.exists() or is_kept_at(cluster, environment_pk)
