"""Find out whether a dump can be restored, when it is made.

A restore can only fail where it computes something again. A database in which that calls nothing
but immutable functions of PostgreSQL can be restored, because its rows were accepted by the same
expressions. Any other one is restored for trial into a database that is dropped again, unless it is
large or takes long: a tenant must not hold up the backup of the platform.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

import psycopg
import structlog
from django.conf import settings
from django.utils import timezone
from psycopg import sql

from sqlgateway.clusters.servers import address_of, administer, said
from sqlgateway.databases import quotas, tenant_databases
from sqlgateway.databases.copies import CopyFailed, CopyTooSlow, programs, sections
from sqlgateway.databases.copies.programs import ProgramLogin
from sqlgateway.databases.copies.verified_copy import limit_of_copy, size_check
from sqlgateway.databases.stock import new_row
from sqlgateway.errors import EngineUnavailable
from sqlgateway.models import Database, RetiredDatabase

# A trial needs as much disk again on the tenants' server, and as long as a clone.
MAX_BYTES: Final = 256 * 2**20
MAX_S: Final = 30.0
# The expressions that a restore computes. Functions below 16384 are PostgreSQL's own. A view may
# have been materialized from other rows than there are now.
COMPUTES: Final = r"""
WITH trees(tree) AS (
    SELECT conbin::text FROM pg_constraint WHERE contype = 'c' AND oid >= 16384
    UNION ALL
    SELECT adbin::text FROM pg_attrdef
    JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
    WHERE attgenerated = 's' AND pg_attrdef.oid >= 16384
    UNION ALL
    SELECT concat(indexprs::text, indpred::text) FROM pg_index WHERE indexrelid >= 16384
    UNION ALL
    SELECT partexprs::text FROM pg_partitioned_table
)
SELECT EXISTS (
    SELECT FROM pg_class WHERE relkind = 'm' AND relispopulated AND oid >= 16384
) OR EXISTS (
    SELECT FROM trees WHERE tree ~ 'SQLVALUEFUNCTION|COERCEVIAIO|XMLEXPR' OR EXISTS (
        SELECT FROM regexp_matches(tree, ':(?:funcid|opfuncid) (\d+)', 'g') AS called
        LEFT JOIN pg_proc ON pg_proc.oid = called[1]::oid
        WHERE pg_proc.oid IS NULL OR pg_proc.oid >= 16384 OR provolatile <> 'i'
    )
)
"""
# What tenants can make, and a restore of a file does not (archives.NOT_RESTORED).
LEFT_OUT: Final = "SELECT 'PUBLICATION ' || pubname FROM pg_publication ORDER BY 1"

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Trial:
    """Whether a dump can be restored. is_known: False if it was not tried, or not to the end.

    complaint: of one that cannot, for its tenant; otherwise ''. left_out: objects that a restore
    does not make, such as ``PUBLICATION p``.
    """

    is_known: bool
    complaint: str = ""
    left_out: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Sentences about the dump, or ''."""
        if self.complaint:
            return f"The dump cannot be restored: {self.complaint}."
        sentences = [] if self.is_known else ["Whether the dump can be restored is not known."]
        if self.left_out:
            sentences.append(f"A restore will leave out {', '.join(self.left_out)}.")
        return " ".join(sentences)


def judge(
    database: Database,
    inside: psycopg.Connection,
    reader: ProgramLogin,
    *,
    snapshot: str,
) -> Trial:
    """Return whether a dump of a snapshot can be restored, and what of it will not be.

    inside: the administrator's connection to the database. Raises psycopg.Error.
    """
    left_out = tuple(name for (name,) in inside.execute(LEFT_OUT.encode()))
    return replace(_judge(database, inside, reader, snapshot), left_out=left_out)


def _judge(
    database: Database, inside: psycopg.Connection, reader: ProgramLogin, snapshot: str
) -> Trial:
    try:
        row = inside.execute(COMPUTES.encode()).fetchone()
        if row == (False,):
            return Trial(is_known=True)
        if quotas.size_of(database) > MAX_BYTES:
            return Trial(is_known=False)
        with _scratch(database) as scratch:
            _restore(database, scratch, reader, snapshot)
    except CopyTooSlow:
        return Trial(is_known=False)
    except CopyFailed as exc:
        if not exc.reason:
            sentence = str(exc)[:300]
            log.warning("sql_trial_not_made", database=database.pk, sentence=sentence)
        return Trial(is_known=bool(exc.reason), complaint=exc.reason)
    except (EngineUnavailable, psycopg.Error) as exc:
        log.warning("sql_trial_not_made", database=database.pk, sentence=said(exc)[:300])
        return Trial(is_known=False)
    return Trial(is_known=True)


def _restore(database: Database, scratch: Database, reader: ProgramLogin, snapshot: str) -> None:
    deadline = time.monotonic() + MAX_S
    address, major = address_of(scratch.cluster), scratch.cluster.server_version // 10_000
    with administer(address, scratch.dbname) as fresh:
        # The platform's own schema, which is part of the dump.
        fresh.execute("DROP SCHEMA IF EXISTS zonal")
    admin = ProgramLogin(address, scratch.dbname, scratch.admin_role, scratch.passwords["admin"])
    check = size_check(scratch, limit_of_copy(database))
    with programs.running_dump(reader, snapshot=snapshot, major=major) as dump:
        sections.restore(dump, admin, major=major, deadline=deadline, check=check)
        dump.finish(deadline)


@contextmanager
def _scratch(database: Database) -> Iterator[Database]:
    """Create a database with roles of its own beside another one, and drop it afterwards.

    What a crash leaves is dropped later: the database as a retired one, the roles when they have
    expired (roles.py).
    """
    scratch = new_row(database.cluster)
    until = timezone.now() + timedelta(seconds=settings.SQL.copy_timeout_s)
    kept = RetiredDatabase.objects.create(
        organization_id=database.organization_id,
        environment_id=database.environment_id,
        cluster=database.cluster,
        dbname=scratch.dbname,
        drop_after=until,
    )
    roles = list(scratch.roles.values())
    try:
        tenant_databases.create(scratch)
        with administer(address_of(database.cluster)) as connection:
            for name in roles:
                connection.execute(
                    sql.SQL("ALTER ROLE {} VALID UNTIL {}").format(
                        sql.Identifier(name), sql.Literal(until.isoformat())
                    )
                )
        yield scratch
    finally:
        tenant_databases.drop_named(database.cluster, scratch.dbname, roles)
        kept.delete()
