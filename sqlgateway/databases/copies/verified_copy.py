"""Copy a database and compare the copy with it; stop a copy that grows too large.

A copy computes what the tenant wants: the materialized view of a function that has been replaced
since may have any number of rows. Quotas measure only databases that are in use.
"""

import time
from collections.abc import Callable

import psycopg
import structlog

from sqlgateway.clusters.organization_limits import quota_of
from sqlgateway.clusters.servers import address_of, administer
from sqlgateway.databases import quotas
from sqlgateway.databases.copies import CopyFailed, privileges, programs, sections
from sqlgateway.databases.copies.privileges import Privileges
from sqlgateway.databases.copies.reading import count_rows, exported_snapshot, reading_role
from sqlgateway.models import Database

log = structlog.get_logger(__name__)


def copy_database(source: Database, target: Database) -> None:
    """Copy a snapshot of the source into a new database, and compare the two.

    The source may be in use. The target must be new and not in use.
    Raises CopyFailed, EngineUnavailable.
    """
    started = time.monotonic()
    try:
        wanted, rows = _transfer(source, target)
        _set_privileges(target, wanted)
        _compare_rows(target, rows)
    except psycopg.Error as exc:
        raise CopyFailed(str(exc)) from exc
    elapsed_ms = round((time.monotonic() - started) * 1000)
    log.info(
        "sql_database_copied",
        source=source.pk,
        target=target.pk,
        tables=len(rows),
        rows=sum(rows.values()),
        elapsed_ms=elapsed_ms,
    )


def _transfer(source: Database, target: Database) -> tuple[Privileges, dict[str, int]]:
    """Copy the data; return the source's privileges and rows by table, of the same snapshot."""
    address = address_of(source.cluster)
    destination = address_of(target.cluster)
    majors = [source.cluster.server_version // 10_000, target.cluster.server_version // 10_000]
    if majors[0] > majors[1]:
        raise CopyFailed("The target's server is older than the source's.")
    with (
        reading_role(address, source) as reader,
        administer(address, source.dbname) as inside,
        exported_snapshot(inside) as snapshot,
    ):
        with administer(destination, target.dbname) as fresh:
            # The platform's own schema, which is part of the copy.
            fresh.execute("DROP SCHEMA IF EXISTS zonal")
        wanted = privileges.read(inside, source.roles)
        admin = programs.ProgramLogin(
            destination, target.dbname, target.admin_role, target.passwords["admin"]
        )
        check = size_check(target, limit_of_copy(source))
        deadline = programs.deadline_of_copy()
        with programs.running_dump(reader, snapshot=snapshot, major=majors[1]) as dump:
            sections.restore(dump, admin, major=majors[1], deadline=deadline, check=check)
            dump.finish(deadline)
        return wanted, count_rows(reader, snapshot=snapshot)


def _set_privileges(target: Database, wanted: Privileges) -> None:
    with administer(address_of(target.cluster), target.dbname) as inside:
        privileges.apply(inside, target.roles, wanted)
        if privileges.read(inside, target.roles) != wanted:
            raise CopyFailed("Owners or privileges of the copy differ.")
        # Old sources do not have the platform's own schema.
        inside.execute("CREATE SCHEMA IF NOT EXISTS zonal")


def _compare_rows(target: Database, rows: dict[str, int]) -> None:
    with reading_role(address_of(target.cluster), target) as reader:
        if count_rows(reader) != rows:
            raise CopyFailed("The copy has other rows than the source.")


def size_check(database: Database, limit_bytes: int) -> Callable[[], None]:
    """Return a function that raises CopyFailed if the database is larger, and EngineUnavailable."""

    def check() -> None:
        if quotas.size_of(database) > limit_bytes:
            sentence = f"The copy has become larger than {limit_bytes} bytes."
            raise CopyFailed(sentence, reason=sentence)

    return check


def limit_of_copy(source: Database) -> int:
    """Return how many bytes a copy of a database may have.

    Raises EngineUnavailable.
    """
    quota_bytes = quota_of(source.organization_id or 0).disk_bytes
    # One over its quota can be moved, too, and a copy may be packed less well.
    return max(quota_bytes, 2 * quotas.size_of(source))
