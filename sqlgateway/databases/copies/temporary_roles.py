"""Roles that exist while a database is copied; a process that is killed leaves them behind."""

from typing import Final

import psycopg
import structlog
from psycopg import sql

from sqlgateway import names
from sqlgateway.clusters.servers import ClusterAddress, address_of, administer
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
            log.warning("sql_roles_not_dropped", cluster=cluster.pk, kind=type(exc).__name__)
    return count


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
                log.warning("sql_role_not_dropped", role=name, kind=type(exc).__name__)
            else:
                count += 1
    return count
