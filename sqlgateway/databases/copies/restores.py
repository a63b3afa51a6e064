"""Dump an environment's database to a file, and restore it from a file.

A restore fills a new database with the same roles while requests continue in the present one. Then
the placement is switched, and the old database is kept for some time.
"""

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg

from common.commands import CommandRefused
from common.locks import AlreadyLocked
from sqlgateway import names
from sqlgateway.audit_tags import SqlTag
from sqlgateway.clusters.organization_limits import quota_of
from sqlgateway.clusters.servers import address_of, administer
from sqlgateway.databases import quotas, tenant_databases
from sqlgateway.databases.copies import (
    CopyFailed,
    archives,
    privileges,
    programs,
    sections,
    switching,
    temporary_roles,
    trials,
)
from sqlgateway.databases.copies.archives import Contents
from sqlgateway.databases.copies.programs import DumpFile
from sqlgateway.databases.copies.reading import exported_snapshot, reading_role
from sqlgateway.databases.copies.trials import Trial
from sqlgateway.databases.copies.verified_copy import size_check
from sqlgateway.models import Database


@dataclass(frozen=True, slots=True)
class DumpResult:
    """A dump that was made."""

    size_bytes: int
    trial: Trial


@dataclass(frozen=True, slots=True)
class DatabaseRestoreResult:
    """The result of a restore.

    stopped_ms: how long requests waited.
    left_out: objects in the dump that were not restored.
    """

    stopped_ms: int
    elapsed_ms: int
    left_out: Sequence[str]


def dump(database: Database, file: Path) -> DumpResult:
    """Write a database in custom format to a new file, which only this user can read.

    The file is complete or absent, also if it cannot be restored, which the result says. The dump
    is a snapshot, and requests continue.
    Raises CommandRefused, EngineUnavailable.
    """
    unfinished = file.with_name(f"{file.name}.unfinished")
    if file.exists():
        raise CommandRefused("file_unwritable", f"{file} exists.")
    try:
        # Created here, because pg_dump's file may be readable by the group.
        unfinished.touch(mode=0o600, exist_ok=False)
    except OSError as exc:
        raise CommandRefused(
            "file_unwritable", f"{unfinished} cannot be made: {exc.strerror}."
        ) from exc
    try:
        trial = _dump(database, unfinished)
        size_bytes = unfinished.stat().st_size
        unfinished.rename(file)
    except (CopyFailed, psycopg.Error) as exc:
        raise CommandRefused("copy_failed", str(exc)) from exc
    finally:
        unfinished.unlink(missing_ok=True)
    return DumpResult(size_bytes, trial)


def restore(database: Database, file: Path, *, all_to_admin: bool) -> DatabaseRestoreResult:
    """Replace an environment's data by a dump in custom format, which may be hostile.

    all_to_admin: for a dump of another environment or server; the admin owns every object, with the
    privileges of a new object. Otherwise a dump with roles of others is refused.
    After an error the present data is unchanged.
    Raises CommandRefused, EngineUnavailable.
    """
    started = time.monotonic()
    try:
        with database.exclusive():
            switching.roll_back(database)
            if database.state != Database.State.ACTIVE:
                raise CommandRefused("database_not_active", f"The database is {database.state}.")
            contents = archives.read_contents(file, database.admin_role, major=_major(database))
            stopped_ms = _restore(database, file, contents, all_to_admin=all_to_admin)
    except AlreadyLocked:
        sentence = "Another process moves, clones or restores this database."
        raise CommandRefused("database_busy", sentence) from None
    except (CopyFailed, psycopg.Error) as exc:
        raise CommandRefused("copy_failed", f"Nothing was changed. {exc}") from exc
    elapsed_ms = round((time.monotonic() - started) * 1000)
    return DatabaseRestoreResult(stopped_ms, elapsed_ms, contents.left_out)


def fill_new(database: Database, file: Path) -> None:
    """Fill a new, unused database from a dump of its previous version.

    The row has the roles of the dump. The dump may be hostile, as in ``restore``.
    Raises CommandRefused, EngineUnavailable; the caller must then create the database again.
    """
    try:
        contents = archives.read_contents(file, database.admin_role, major=_major(database))
        if contents.foreign:
            raise CommandRefused(
                "owners_differ", "The dump has objects of roles that are not its admin."
            )
        _fill(database, file, contents, all_to_admin=False)
        # The dump's SQL ran as a role of the environment, and may have changed it.
        tenant_databases.set_passwords(database)
    except (CopyFailed, psycopg.Error) as exc:
        tenant_databases.try_end_copy(database)
        raise CommandRefused("copy_failed", str(exc)) from exc


def _dump(database: Database, file: Path) -> Trial:
    address = address_of(database.cluster)
    with (
        administer(address, database.dbname) as inside,
        # First, so that the dump does not contain the privileges of the reading role.
        exported_snapshot(inside) as snapshot,
        reading_role(address, database) as reader,
    ):
        programs.dump_to(file, reader, snapshot=snapshot, major=_major(database))
        return trials.judge(database, inside, reader, snapshot=snapshot)


def _restore(database: Database, file: Path, contents: Contents, *, all_to_admin: bool) -> int:
    if contents.foreign and not all_to_admin:
        sentence = "The dump has objects of roles that are not this environment's admin."
        raise CommandRefused("owners_differ", f"{sentence} --all-to-admin gives them to it.")
    arrival = copy.copy(database)
    arrival.dbname = names.database_name()
    switching.begin(database, arrival)
    try:
        tenant_databases.create(arrival)
        limit_bytes = quota_of(database.organization_id or 0).disk_bytes
        check = size_check(arrival, limit_bytes)
        _fill(arrival, file, contents, all_to_admin=all_to_admin, check=check)
        _refuse_too_large(arrival, limit_bytes)
        stopped_at = switching.stop(database)
        # The dump's SQL ran as a role of the environment, and may have changed it.
        arrival.secrets = database.secrets
        tenant_databases.set_passwords(arrival)
        return switching.switch(database, arrival, SqlTag.DATABASE_RESTORE, stopped_at=stopped_at)
    except BaseException:
        switching.try_roll_back(database)
        raise


def _fill(
    arrival: Database,
    file: Path,
    contents: Contents,
    *,
    all_to_admin: bool,
    check: Callable[[], None] | None = None,
) -> None:
    address, major = address_of(arrival.cluster), _major(arrival)
    if not all_to_admin:
        # Otherwise the platform's default privileges would apply in addition to the dump's.
        with administer(address, arrival.dbname) as inside:
            privileges.forget_defaults(inside, arrival.roles)
    admin = programs.ProgramLogin(
        address, arrival.dbname, arrival.admin_role, arrival.passwords["admin"]
    )
    sections.restore(
        DumpFile(file),
        admin,
        major=major,
        deadline=programs.deadline_of_copy(),
        entries=contents.objects,
        check=check,
    )
    if not all_to_admin:
        with temporary_roles.stand_ins(address, arrival.dbname, file, contents, major=major):
            programs.restore_privileges(file, admin, contents.privileges, major=major)


def _refuse_too_large(arrival: Database, limit_bytes: int) -> None:
    size_bytes = quotas.size_of(arrival)
    if size_bytes > limit_bytes:
        sentence = f"The restored database has {size_bytes} bytes; {limit_bytes} are allowed."
        raise CommandRefused("quota_exceeded", sentence)


def _major(database: Database) -> int:
    return database.cluster.server_version // 10_000
