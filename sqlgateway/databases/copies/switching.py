"""Switch an environment to another database, on the same cluster or on another one.

``begin`` records the unfinished copy, ``stop`` ends the tenant's sessions, ``switch`` changes the
row in one commit. After a crash before that commit the old database is valid, and ``roll_back``
undoes the rest. After the commit the new database is valid, and the old one is kept for some time.
"""

import time
from typing import Final

import psycopg
import structlog
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from audit import trail
from audit.tags import AuditTag
from common.commands import CommandRefused
from common.locks import AlreadyLocked
from sqlgateway.clusters.placements import PLACEMENT_CACHE
from sqlgateway.clusters.servers import address_of, administer, said
from sqlgateway.databases import quotas, retirement, tenant_databases
from sqlgateway.errors import EngineUnavailable
from sqlgateway.models import Database, InteractiveTransaction

NOT_MOVING: Final = {"moving_to": None, "moving_dbname": "", "moving_since": None}

log = structlog.get_logger(__name__)


def begin(database: Database, arrival: Database) -> None:
    """Record that a new database is about to be created and filled.

    arrival: the future row. The caller holds the database's lock until the switch or rollback.
    """
    database.moving_to = arrival.cluster
    database.moving_dbname = arrival.dbname
    database.moving_since = timezone.now()
    database.save(update_fields=["moving_to", "moving_dbname", "moving_since"])


def stop(database: Database) -> float:
    """Make requests wait, and end the tenant's sessions; return the time.monotonic() at the start.

    Raises CommandRefused if another process has changed the row, EngineUnavailable.
    """
    started = time.monotonic()
    rows = _same_row(database).filter(state=Database.State.ACTIVE)
    if not rows.update(state=Database.State.MOVING):
        raise _overtaken()
    PLACEMENT_CACHE.forget(database.environment_id)
    tenant_databases.end_sessions(database)
    _settle_commits(database)
    # The guard is not copied; the next measurement imposes it on the new database.
    quotas.release(database)
    database.refresh_from_db()
    return started


def switch(database: Database, arrival: Database, tag: AuditTag, *, stopped_at: float) -> int:
    """Make ``arrival`` the environment's database, retire the old one, and let requests continue.

    Returns how long requests waited, in milliseconds.
    Raises CommandRefused if another process has changed the row, EngineUnavailable.
    """
    has_moved = arrival.cluster_id != database.cluster_id
    # A process with a cached placement must not connect to the old database.
    tenant_databases.set_open(database, is_open=False)
    if not has_moved:
        tenant_databases.set_login(database, allowed=True)
    rows = _same_row(database).filter(state=Database.State.MOVING)
    with transaction.atomic():
        stopped_ms = round((time.monotonic() - stopped_at) * 1000)
        changed = rows.update(
            cluster=arrival.cluster,
            dbname=arrival.dbname,
            hardening=arrival.hardening,
            state=Database.State.ACTIVE,
            is_over_quota=False,
            **NOT_MOVING,
        )
        if not changed:
            raise _overtaken()
        retirement.retire(database, roles=list(database.roles.values()) if has_moved else [])
        _record(database, tag, stopped_ms)
    database.refresh_from_db()
    PLACEMENT_CACHE.forget(database.environment_id)
    log.info("sql_database_switched", database=database.pk, stopped_ms=stopped_ms)
    return stopped_ms


def roll_back(database: Database) -> None:
    """Undo ``begin`` and ``stop``: let requests continue, and drop the unfinished copy.

    Reads the row again; does nothing after a switch. The caller holds the database's lock.
    Raises EngineUnavailable; the caller should try again.
    """
    database.refresh_from_db()
    cluster, dbname = database.moving_to, database.moving_dbname
    if cluster is None:
        return
    undone_since = timezone.now()
    # From here on a process that lost its lock together with its connection cannot switch.
    if not _same_row(database).update(moving_since=undone_since):
        database.refresh_from_db()
        return
    database.moving_since = undone_since
    if database.state == Database.State.MOVING:
        tenant_databases.set_open(database, is_open=True)
        tenant_databases.set_login(database, allowed=True)
        still = _same_row(database).filter(state=Database.State.MOVING)
        if not still.update(state=Database.State.ACTIVE):
            # The environment was deleted meanwhile.
            tenant_databases.set_login(database, allowed=False)
    if cluster.pk != database.cluster_id:
        is_kept = retirement.is_kept_at(cluster, database.environment_id)
        roles = [] if is_kept else list(database.roles.values())
        tenant_databases.drop_named(cluster, dbname, roles)
    elif dbname != database.dbname:
        tenant_databases.drop_named(cluster, dbname, [])
    _same_row(database).update(**NOT_MOVING)
    database.refresh_from_db()
    log.warning("sql_switch_rolled_back", database=database.pk)


def try_roll_back(database: Database) -> None:
    """Roll back if the servers answer; otherwise ``recover`` does it later."""
    try:
        roll_back(database)
    except (EngineUnavailable, psycopg.Error):
        log.warning("sql_switch_not_rolled_back", database=database.pk)


def recover() -> None:
    """Roll back moves and restores whose process was killed."""
    for database in Database.objects.exclude(moving_to=None):
        try:
            with database.exclusive():
                roll_back(database)
        except (AlreadyLocked, EngineUnavailable, psycopg.Error) as exc:
            # Its process still runs, or a server does not answer; the next call tries again.
            log.info("sql_switch_not_recovered", database=database.pk, said=said(exc))


def _settle_commits(database: Database) -> None:
    """Record the outcome of commits whose answer was lost.

    The new server does not know the transactions' ids.
    """
    rows = InteractiveTransaction.objects.filter(
        environment_id=database.environment_id, state=InteractiveTransaction.State.COMMITTING
    ).exclude(xid="")
    endings = {
        "committed": InteractiveTransaction.State.COMMITTED,
        "aborted": InteractiveTransaction.State.ROLLED_BACK,
    }
    for row in rows:
        with administer(address_of(database.cluster)) as connection:
            found = connection.execute("SELECT pg_xact_status(%s::xid8)", [row.xid]).fetchone()
        ending = endings.get(str(found[0])) if found is not None else None
        if ending is not None:
            own = InteractiveTransaction.objects.filter(pk=row.pk, state=row.state)
            own.update(state=ending)


def _same_row(database: Database) -> QuerySet[Database]:
    """Return the row, unless another move or restore has begun."""
    return Database.objects.filter(pk=database.pk, moving_since=database.moving_since)


def _overtaken() -> CommandRefused:
    return CommandRefused(
        "database_not_active", "Another process changed or deleted the environment."
    )


def _record(database: Database, tag: AuditTag, stopped_ms: int) -> None:
    if database.environment is not None:
        trail.add(
            None,
            tag,
            organization_id=database.organization_id,
            environment_id=database.environment.slug,
            actor="platform",
            data={"stopped_ms": stopped_ms},
        )
