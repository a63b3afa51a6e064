"""Roles that exist while a database is copied; a process that is killed leaves them behind.

The role that reads a database may be granted privileges that the admin revoked from itself
(reading.py). Another dump that is made at that time contains this grant, which cannot be restored
after the role was dropped. So a restore creates the roles that its dump grants privileges to.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Final

import psycopg
import structlog
from django.conf import settings
from django.utils import timezone
from psycopg import sql

from sqlgateway import names
from sqlgateway.clusters.servers import ClusterAddress, address_of, administer, said
from sqlgateway.databases.copies import programs
from sqlgateway.databases.copies.archives import Contents
from sqlgateway.errors import EngineUnavailable
from sqlgateway.models import Cluster

log = structlog.get_logger(__name__)

# With the databases in which a role has privileges. Roles of tenants do not expire.
EXPIRED: Final = """
SELECT rolname, array_remove(array_agg(DISTINCT datname::text), NULL)
FROM pg_roles AS role
LEFT JOIN pg_shdepend ON refclassid = 'pg_authid'::regclass AND refobjid = role.oid
LEFT JOIN pg_database AS database ON database.oid = dbid
WHERE starts_with(rolname, %s) AND rolvaliduntil < now() - interval '1 hour'
GROUP BY rolname
"""
ROLE_NAME: Final = re.compile(rf"\b{names.ROLE_PREFIX}[{names.ALPHABET}]{{{names.LENGTH}}}\b")
# The maximum number of roles, because a dump may be hostile.
MAX_GRANTEES: Final = 100


def drop(inside: psycopg.Connection, name: str) -> None:
    """Drop a role that has privileges in the connection's database, and owns nothing."""
    role = sql.Identifier(name)
    # Revokes the privileges.
    inside.execute(sql.SQL("DROP OWNED BY {role}").format(role=role))
    inside.execute(sql.SQL("DROP ROLE {role}").format(role=role))


def drop_expired() -> int:
    """Drop the roles that expired at least an hour ago, on all clusters; return their number."""
    count = 0
    for cluster in Cluster.objects.exclude(state=Cluster.State.CLOSED):
        try:
            count += _drop_expired(address_of(cluster))
        except (EngineUnavailable, psycopg.Error) as exc:
            log.warning("sql_roles_not_dropped", cluster=cluster.pk, said=said(exc))
    return count


@contextmanager
def stand_ins(
    address: ClusterAddress, dbname: str, file: Path, contents: Contents, *, major: int
) -> Iterator[None]:
    """Create missing roles without any rights, while a dump's privileges are restored.

    Raises CopyFailed, EngineUnavailable.
    """
    text = programs.print_entries(file, contents.privileges, major=major)
    made = _make(address, dbname, sorted(set(ROLE_NAME.findall(text))))
    try:
        yield
    finally:
        with administer(address, dbname) as inside:
            for name in made:
                # Another restore of the same dump may use the role, and then drops it at its end.
                with suppress(psycopg.errors.DependentObjectsStillExist):
                    drop(inside, name)


def _drop_expired(address: ClusterAddress) -> int:
    count = 0
    with administer(address) as connection:
        for name, databases in connection.execute(EXPIRED, [names.ROLE_PREFIX]).fetchall():
            try:
                for dbname in databases:
                    with administer(address, dbname) as inside:
                        inside.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(name)))
                connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))
            except (EngineUnavailable, psycopg.Error) as exc:
                # One of the databases is kept after a move, and closed: the others do not wait.
                log.warning("sql_role_not_dropped", role=name, said=said(exc))
            else:
                count += 1
    return count


def _make(address: ClusterAddress, dbname: str, wanted: list[str]) -> list[str]:
    made: list[str] = []
    # A crash may leave the roles behind (``drop_expired``).
    until = timezone.now() + timedelta(seconds=settings.SQL.copy_timeout_s)
    with administer(address, dbname) as inside:
        rows = inside.execute("SELECT rolname FROM pg_roles WHERE rolname = ANY(%s)", [wanted])
        known = {str(name) for (name,) in rows}
        for name in [each for each in wanted if each not in known][:MAX_GRANTEES]:
            with suppress(psycopg.errors.DuplicateObject):
                inside.execute(
                    sql.SQL("CREATE ROLE {} NOLOGIN VALID UNTIL {}").format(
                        sql.Identifier(name), sql.Literal(until.isoformat())
                    )
                )
                made.append(name)
    return made
