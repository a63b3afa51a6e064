"""Find the database of a scope; at the first use claim one from the stock, or create it."""

from typing import Final

import structlog
from django.db import IntegrityError, transaction
from procrastinate.exceptions import AlreadyEnqueued

from common.errors import NotFound
from common.locks import AlreadyLocked
from common.principals import Scope
from common.scoping import across_environments, within
from sqlgateway.clusters.organization_limits import Quota, quota_of
from sqlgateway.clusters.placements import PLACEMENT_CACHE, Placement, placement_of, quota_of_row
from sqlgateway.clusters.servers import emptiest
from sqlgateway.databases import quotas, retirement, stock, tasks, tenant_databases
from sqlgateway.databases.copies import clones, switching
from sqlgateway.errors import CloneFailed, DatabaseNotReady, EngineUnavailable
from sqlgateway.models import Database
from sqlgateway.pg import pool

STATES: Final = {
    str(Database.State.ACTIVE): "ready",
    str(Database.State.MOVING): "moving",
    str(Database.State.COPYING): "copying",
    str(Database.State.FAILED): "failed",
}
ALIVE: Final = (
    Database.State.ACTIVE,
    Database.State.MOVING,
    Database.State.COPYING,
    Database.State.FAILED,
)

log = structlog.get_logger(__name__)


def database_for(scope: Scope) -> Placement:
    """Return the placement of a scope; the first call creates its database.

    Idempotent: concurrent callers get the same database.
    Raises NotFound (the environment was deleted), EngineUnavailable (the cluster does not answer).
    """
    cached = PLACEMENT_CACHE.get(scope.environment_pk)
    if cached is not None:
        return cached
    database = _find(scope) or _claim(scope) or _make(scope)
    _require_ready(database)
    placement = placement_of(database)
    PLACEMENT_CACHE.put(scope.environment_pk, placement)
    return placement


def limits_of(scope: Scope) -> Quota:
    """Return the organization's limits, without creating a database.

    The placement, which the request needs anyway, is cached, so that it is not read again.
    """
    cached = PLACEMENT_CACHE.get(scope.environment_pk)
    if cached is not None:
        return cached.quota
    database = _find(scope)
    if database is None:
        return quota_of(scope.organization_id)
    # placement_of would contact a cluster without flags.
    if database.state == Database.State.ACTIVE and database.cluster.flags:
        PLACEMENT_CACHE.put(scope.environment_pk, placement_of(database))
    return quota_of_row(database)


def on_environment_deleted(environment_pk: int) -> None:
    """Disable an environment's logins and end its open connections.

    The row changes in the caller's transaction, the server after its commit. If the server does not
    answer then, the environment is closed nevertheless: its sessions on the platform have ended,
    and the row is not ACTIVE.
    """
    rows = across_environments(Database).filter(environment_id=environment_pk)
    rows.filter(state__in=ALIVE).update(state=Database.State.SUSPENDED)
    PLACEMENT_CACHE.forget(environment_pk)
    for database in rows.select_related("cluster"):
        _cut_off_after_commit(database)


def on_environment_dropped(environment_pk: int) -> None:
    """Drop an environment's database, its roles and its row; safe to repeat.

    Raises EngineUnavailable, also while the database is being copied; the task then tries again.
    """
    PLACEMENT_CACHE.forget(environment_pk)
    retirement.drop_of_environment(environment_pk)
    database = (
        across_environments(Database)
        .select_related("cluster")
        .filter(environment_id=environment_pk)
        .first()
    )
    if database is None:
        return
    try:
        with database.exclusive():
            # Also drop an unfinished copy, which only the row names.
            switching.roll_back(database)
            _drop(database)
    except AlreadyLocked:
        raise EngineUnavailable("The database is being moved, cloned or restored.") from None


def _drop(database: Database) -> None:
    # The state first, so that the row shows the intention after a crash.
    database.state = Database.State.DROPPED
    database.save(update_fields=["state"])
    pool.CONNECTION_POOL.forget(database.dbname)
    tenant_databases.drop(database)
    database.delete()


def on_environment_cloned(organization_id: int, source_pk: int, environment_pk: int) -> None:
    """Queue the copy of an environment's data into a new one, in the caller's transaction.

    Raises EnvironmentNotReady.
    """
    row = clones.prepare(organization_id, source_pk, environment_pk)
    if row is not None:
        tasks.queue_clone(row.pk, organization_id)


def state_of(environment_pk: int) -> str:
    """Return the state of an environment's database for its members.

    ``none`` (it is created at the first query), ``ready``, ``moving``, ``copying`` or ``failed``.
    """
    rows = across_environments(Database).filter(environment_id=environment_pk)
    return STATES.get(rows.values_list("state", flat=True).first() or "", "none")


def error_of(environment_pk: int) -> str | None:
    """Return why the clone of an environment failed, for its members; None if it did not."""
    rows = across_environments(Database).filter(
        environment_id=environment_pk, state=Database.State.FAILED
    )
    return rows.values_list("copy_error", flat=True).first()


def progress_of(environment_pk: int) -> float | None:
    """Return the progress of a clone, from 0 to 1; None if the database is not a clone in progress.

    An estimate from the sizes on disk, below 1 until the clone is ready. Also None while a server
    does not answer.
    """
    database = (
        across_environments(Database)
        .select_related("cluster", "copy_source__cluster")
        .filter(environment_id=environment_pk, state=Database.State.COPYING)
        .first()
    )
    if database is None or database.copy_source is None:
        return None
    try:
        size_bytes, whole_bytes = (quotas.size_of(one) for one in (database, database.copy_source))
    except EngineUnavailable:
        return None
    return round(min(size_bytes / max(whole_bytes, 1), 0.99), 2)


def _require_ready(database: Database) -> None:
    if database.state in {Database.State.MOVING, Database.State.COPYING}:
        raise DatabaseNotReady
    if database.state == Database.State.FAILED:
        raise CloneFailed(database.copy_error)
    if database.state != Database.State.ACTIVE:
        raise NotFound


def _find(scope: Scope) -> Database | None:
    with within(scope):
        found: Database | None = (
            Database.objects.select_related("cluster", "organization__quota")
            .exclude(state=Database.State.PREPARING)
            .first()
        )
    return found


def _claim(scope: Scope) -> Database | None:
    try:
        with transaction.atomic():
            database = stock.claim(scope.organization_id, scope.environment_pk)
    except IntegrityError:
        # Another request was faster, or the environment was deleted with its organization.
        return _find(scope)
    _ask_for_refill()
    return database


def _make(scope: Scope) -> Database:
    """Create a database for the scope; concurrent callers wait for the row."""
    row = stock.new_row(emptiest(scope.organization_id))
    row.organization_id = scope.organization_id
    row.environment_id = scope.environment_pk
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError:
        log.debug("sql_database_made_by_another", environment=scope.environment_pk)
    with transaction.atomic():
        with within(scope):
            rows = Database.objects.select_related("cluster").select_for_update(of=("self",))
        database: Database | None = rows.first()
        if database is None:
            raise NotFound
        if database.state == Database.State.PREPARING:
            _create(database)
            database.hand_over(scope.organization_id, scope.environment_pk)
    return database


def _create(database: Database) -> None:
    """Create a new environment's database, on another cluster if its own one does not answer.

    Raises EngineUnavailable if no cluster with room does.
    """
    unreachable: set[int] = set()
    while True:
        try:
            return tenant_databases.create(database)
        except EngineUnavailable:
            unreachable.add(database.cluster_id)
            target = emptiest(database.organization_id, without=unreachable)
            # What an earlier attempt may have created there.
            retirement.retire(database, roles=list(database.roles.values()), keep_hours=0)
            database.cluster = target
            database.save(update_fields=["cluster"])


def _cut_off_after_commit(database: Database) -> None:
    # Not a partial: Django logs the name of a function that fails, and a partial has none.
    def cut_off() -> None:
        pool.CONNECTION_POOL.forget(database.dbname)
        tenant_databases.set_login(database, allowed=False)

    transaction.on_commit(cut_off, robust=True)


def _ask_for_refill() -> None:
    try:
        # A separate transaction: the refusal of a second job must not break the caller's.
        with transaction.atomic():
            tasks.refill_stock.defer()
    except AlreadyEnqueued:
        log.debug("sql_refill_queued_already")
