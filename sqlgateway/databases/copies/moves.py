"""Move an environment's database to another cluster.

The target is created with the same names and passwords while requests continue. Then requests wait
until the data was copied and compared, and the placement switched.
"""

import copy
import time
from dataclasses import dataclass

import psycopg

from common.commands import CommandRefused
from common.locks import AlreadyLocked
from sqlgateway.audit_tags import SqlTag
from sqlgateway.clusters import servers
from sqlgateway.databases import retirement, tenant_databases
from sqlgateway.databases.copies import CopyFailed, switching
from sqlgateway.databases.copies.verified_copy import copy_database
from sqlgateway.models import Cluster, Database


@dataclass(frozen=True, slots=True)
class MoveResult:
    """Durations of a move. stopped_ms: how long requests waited; 0 if nothing was moved."""

    stopped_ms: int
    elapsed_ms: int


def move(database: Database, target: Cluster) -> MoveResult:
    """Move a database to another cluster, unless it is there already.

    An interrupted move is undone first. After an error the database is still in its old place.
    Raises CommandRefused, EngineUnavailable.
    """
    started = time.monotonic()
    try:
        with database.exclusive():
            switching.roll_back(database)
            if database.cluster_id == target.pk:
                return MoveResult(0, 0)
            _check(database, target)
            stopped_ms = _move(database, target)
    except AlreadyLocked:
        sentence = "Another process moves, clones or restores this database."
        raise CommandRefused("database_busy", sentence) from None
    except (CopyFailed, psycopg.Error) as exc:
        raise CommandRefused("copy_failed", f"Nothing was changed. {exc}") from exc
    return MoveResult(stopped_ms, round((time.monotonic() - started) * 1000))


def _check(database: Database, target: Cluster) -> None:
    """Refuse a move that cannot succeed.

    The servers are compared: if they are the same one, creating the target would drop the source.
    """
    if database.state != Database.State.ACTIVE:
        raise CommandRefused("database_not_active", f"The database is {database.state}.")
    if target.state != Cluster.State.OPEN:
        raise CommandRefused("cluster_not_open", f"The cluster {target.name} is {target.state}.")
    if target.reserved_for_id not in {None, database.organization_id}:
        sentence = f"The cluster {target.name} is for the organization {target.reserved_for_id}."
        raise CommandRefused("cluster_not_open", sentence)
    if not servers.has_room(target):
        raise CommandRefused("cluster_full", f"The cluster {target.name} is full.")
    numbers = []
    for cluster in (database.cluster, target):
        with servers.administer(servers.address_of(cluster)) as connection:
            numbers.append(servers.system_identifier(connection))
    if numbers[0] == numbers[1]:
        raise CommandRefused("cluster_taken", "Both clusters are the same server.")


def _move(database: Database, target: Cluster) -> int:
    arrival = copy.copy(database)
    arrival.cluster = target
    switching.begin(database, arrival)
    try:
        # The target may have the database from an earlier move.
        retirement.drop_at(target, database.dbname)
        tenant_databases.create(arrival)
        stopped_at = switching.stop(database)
        copy_database(database, arrival)
        return switching.switch(database, arrival, SqlTag.DATABASE_MOVE, stopped_at=stopped_at)
    except BaseException:
        switching.try_roll_back(database)
        raise
