"""Create an environment's database as a copy of another environment's."""

from typing import Final

import psycopg
import structlog
from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from audit import trail
from common.locks import AlreadyLocked
from common.scoping import across_environments
from environments.errors import EnvironmentNotReady, QuotaExceeded
from sqlgateway.audit_tags import SqlTag
from sqlgateway.clusters import servers
from sqlgateway.clusters.placements import PLACEMENT_CACHE
from sqlgateway.databases import quotas, retirement, stock, tenant_databases
from sqlgateway.databases.copies import CopyFailed
from sqlgateway.databases.copies.verified_copy import copy_database
from sqlgateway.errors import DatabaseNotReady, EngineUnavailable
from sqlgateway.models import Database

MAX_ATTEMPTS: Final = 5
SAID_CHARS: Final = 300
# The states of databases that can be copied, now or soon.
SOURCES: Final = frozenset({Database.State.ACTIVE, Database.State.MOVING})

log = structlog.get_logger(__name__)


def prepare(organization_id: int, source_pk: int, environment_pk: int) -> Database | None:
    """Add the row of a new environment's database, which ``run`` will create as a copy.

    Both environments belong to the organization. None if the source has no database: the new
    environment gets an empty one at its first query.
    Raises EnvironmentNotReady, QuotaExceeded.
    """
    source = (
        across_environments(Database)
        .filter(organization_id=organization_id)
        .select_related("cluster")
        .filter(environment_id=source_pk)
        .first()
    )
    if source is None or source.state == Database.State.PREPARING:
        return None
    if source.state not in SOURCES:
        raise EnvironmentNotReady
    if source.is_over_quota:
        raise QuotaExceeded("The environment to copy from is over its disk quota.")
    # ``run`` decides about the cluster.
    row = stock.new_row(source.cluster)
    row.organization_id = organization_id
    row.environment_id = environment_pk
    row.copy_source = source
    row.state = Database.State.COPYING
    row.save(force_insert=True)
    return row


def run(database_pk: int) -> None:
    """Create and fill the database of a row that ``prepare`` added, unless that is done or running.

    The row is FAILED, with the reason, after MAX_ATTEMPTS, or after an attempt that another one
    would only repeat.
    Raises DatabaseNotReady, EngineUnavailable; the caller should try again later.
    """
    row = (
        Database.objects.select_related("cluster")
        .filter(pk=database_pk, state=Database.State.COPYING)
        .first()
    )
    if row is None:
        return
    try:
        with row.exclusive():
            _attempt(row)
    except AlreadyLocked:
        log.info("sql_clone_runs_already", database=database_pk)


def unfinished() -> list[tuple[int, int]]:
    """Return the key and the organization's id of each row that has not been filled."""
    rows = Database.objects.filter(state=Database.State.COPYING)
    return list(rows.values_list("pk", "organization_id"))


def place_of(database_pk: int, organization_id: int) -> int:
    """Return how much of its organization goes first: earlier copies, and attempts at this one."""
    rows = across_environments(Database).filter(
        organization_id=organization_id, state=Database.State.COPYING
    )
    attempts = rows.filter(pk=database_pk).values_list("copy_attempts", flat=True).first()
    return rows.filter(pk__lt=database_pk).count() + (attempts or 0)


def _has_good_place(row: Database) -> bool:
    # The row itself is included in the count.
    places = servers.open_to(row.organization_id).filter(placed__lte=F("capacity"))
    return places.filter(pk=row.cluster_id).exists()


def _attempt(row: Database) -> None:
    row.refresh_from_db()
    if row.state != Database.State.COPYING:
        return
    if row.copy_attempts >= MAX_ATTEMPTS:
        # The last attempt ended together with its process.
        _give_up(row, "")
        return
    row.copy_attempts += 1
    row.save(update_fields=["copy_attempts"])
    try:
        _fill(row)
    except (CopyFailed, EngineUnavailable, DatabaseNotReady, psycopg.Error) as exc:
        reason = exc.reason if isinstance(exc, CopyFailed) else ""
        # The reason may name the tenant's objects: it is for the tenant alone.
        sentence = "" if reason == str(exc) else servers.said(exc)[:SAID_CHARS]
        kind = type(exc).__name__
        log.warning("sql_clone_failed", database=row.pk, kind=kind, sentence=sentence)
        if not reason and row.copy_attempts < MAX_ATTEMPTS:
            tenant_databases.try_end_copy(row)
            raise DatabaseNotReady from None
        _give_up(row, reason)


def _give_up(row: Database, reason: str) -> None:
    tenant_databases.try_end_copy(row)
    reason = reason or f"{MAX_ATTEMPTS} attempts failed: a server was not available, or changed."
    with transaction.atomic():
        if _own(row).update(state=Database.State.FAILED, copy_error=reason):
            _record(row, outcome="failed", reason=reason)


def _record(row: Database, *, outcome: str = "success", **facts: str) -> None:
    source = row.copy_source
    if row.environment is None:
        return
    copied = {"from": source.environment.slug} if source and source.environment else {}
    trail.add(
        None,
        SqlTag.DATABASE_CLONE,
        organization_id=row.organization_id,
        environment_id=row.environment.slug,
        actor="platform",
        outcome=outcome,
        data={**copied, **facts},
    )


def _fill(row: Database) -> None:
    source = row.copy_source
    if source is None or source.state not in SOURCES:
        gone = "The environment to copy from was deleted."
        raise CopyFailed(gone, reason=gone)
    if source.state != Database.State.ACTIVE:
        raise DatabaseNotReady
    if not (_has_good_place(row) and servers.answers(row.cluster)):
        _place_elsewhere(row, major=source.cluster.server_version // 10_000)
    # Drops triggers of the quota guard that could not be dropped before because of a lock.
    quotas.release(source)
    tenant_databases.create(row)
    copy_database(source, row)
    with transaction.atomic():
        changed = _own(row).update(
            state=Database.State.ACTIVE,
            hardening=row.hardening,
            claimed_at=timezone.now(),
            copy_source=None,
        )
        if changed:
            _record(row)
    PLACEMENT_CACHE.forget(row.environment_id)


def _place_elsewhere(row: Database, *, major: int) -> None:
    """Choose another cluster; the database of an earlier attempt is dropped later."""
    target = servers.emptiest(row.organization_id, major=major, without={row.cluster_id})
    with transaction.atomic():
        if row.copy_attempts > 1:
            retirement.retire(row, roles=list(row.roles.values()), keep_hours=0)
        row.cluster = target
        row.save(update_fields=["cluster"])


def _own(row: Database) -> QuerySet[Database]:
    """Return the row if it is still being filled: its environment may have been deleted."""
    return Database.objects.filter(pk=row.pk, state=Database.State.COPYING)
