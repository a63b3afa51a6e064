"""Replace the passwords of a database's roles while requests continue.

The passwords are changed on the server, and then in the row, which is locked until both are done. A
login that is refused in between reads the row again after the lock is released (changed_roles.py),
and so gets the new passwords. After a crash in between the row has the old passwords, which the
next login, or the check of roles, sets on the server again. A rotation that did not report its end
must be repeated.
"""

from datetime import datetime, timedelta
from typing import Final

import psycopg
import structlog
from django.conf import settings
from django.db import transaction

from audit import trail
from common.commands import CommandRefused
from common.locks import AlreadyLocked
from common.permissions import Role
from sqlgateway import names
from sqlgateway.audit_tags import SqlTag
from sqlgateway.clusters.placements import CACHE_S, PLACEMENT_CACHE
from sqlgateway.clusters.servers import address_of, administer, said, unavailable
from sqlgateway.errors import EngineUnavailable
from sqlgateway.hardening.tenant_roles import RoleSpec, restore_role
from sqlgateway.models import Cluster, Database
from sqlgateway.pg import changed_roles

# The states in which the passwords of a database can be replaced.
STATES: Final = (Database.State.STOCK, Database.State.ACTIVE)
# After this time every process has read the new passwords, and closes connections with old ones.
KNOWN_AFTER_S: Final = 2 * CACHE_S
# How long old sessions are searched for: task workers may be stopped for some hours.
LOOKED_FOR: Final = timedelta(days=1)
END_SESSIONS: Final = """
SELECT count(pg_terminate_backend(pid))
FROM unnest(%s::text[], %s::timestamptz[]) AS changed(rolname, since)
JOIN pg_stat_activity ON usename = rolname AND backend_start < since
WHERE clock_timestamp() - since > make_interval(
    secs => CASE WHEN state = 'idle' THEN %s ELSE %s END
)
"""

log = structlog.get_logger(__name__)


def rotate(database: Database) -> None:
    """Replace the three passwords; no login succeeds with the old ones when this returns.

    Raises CommandRefused (it is being moved, copied or restored, or is not in use) and
    EngineUnavailable; the old passwords are still valid then.
    """
    try:
        with database.exclusive(), transaction.atomic():
            row = _locked_row(database)
            passwords: dict[Role, str] = {role: names.password() for role in row.roles}
            row.passwords_since = _set_on_server(row, passwords)
            row.passwords = passwords
            row.save(update_fields=["secrets", "passwords_since"])
            _record(row)
    except AlreadyLocked:
        sentence = "Another process moves, clones, restores or rotates this database."
        raise CommandRefused("database_busy", sentence) from None
    PLACEMENT_CACHE.forget(row.environment_id)
    log.info("sql_passwords_rotated", database=row.pk)


def end_old_sessions(*, now: datetime) -> None:
    """End sessions that were opened with a password that was replaced.

    The platform closes its own sessions when their requests end, so only sessions of others are
    ended here. Clusters behind a pooler are skipped, because the pooler's server connections
    outlive the sessions of its clients.
    """
    looked_for = now - LOOKED_FOR - timedelta(seconds=max_request_s())
    for cluster in Cluster.objects.exclude(state=Cluster.State.CLOSED):
        rows = Database.objects.filter(
            cluster=cluster, state__in=STATES, passwords_since__gt=looked_for
        )
        since = {user: row.passwords_since for row in rows for user in row.roles.values()}
        if since:
            _end_old_sessions(cluster, since)


def max_request_s() -> float:
    """Return how long a request or an interactive transaction may hold a connection."""
    limits = settings.SQL
    seconds = (limits.import_timeout_s, limits.export_timeout_s, limits.timeout_ms / 1000)
    return float(max(*seconds, limits.transaction_life_s))


def _locked_row(database: Database) -> Database:
    row: Database | None = (
        Database.objects.select_related("cluster", "environment")
        .select_for_update(of=("self",))
        .filter(pk=database.pk)
        .first()
    )
    if row is None or row.state not in STATES:
        state = "gone" if row is None else row.state
        raise CommandRefused("database_not_active", f"The database is {state}.")
    return row


def _set_on_server(row: Database, passwords: dict[Role, str]) -> datetime:
    """Set the passwords, all or none; return the server's time afterwards.

    Only verifiers are sent. A tenant can change its roles in a loop, as in changed_roles.py.
    """
    with administer(address_of(row.cluster)) as connection:
        try:
            for _ in range(changed_roles.REPAIR_ATTEMPTS):
                try:
                    changed_roles.begin_locked(connection, [*row.roles.values()])
                    for role, user in row.roles.items():
                        spec = RoleSpec(user, role, row.dbname, passwords[role])
                        restore_role(connection, spec)
                    connection.execute("COMMIT")
                except changed_roles.LOST_RACES as exc:
                    changed_roles.end_changes(connection, row, exc)
                else:
                    return _now(connection)
        except psycopg.Error as exc:
            # An object is missing on the server; the message names the role.
            log.warning("sql_passwords_not_rotated", database=row.pk, said=said(exc))
            raise unavailable(exc) from None
    raise EngineUnavailable("The role is being changed.")


def _now(connection: psycopg.Connection) -> datetime:
    now: datetime = connection.execute("SELECT clock_timestamp()").fetchall()[0][0]
    return now


def _record(row: Database) -> None:
    if row.environment is not None:
        trail.add(
            None,
            SqlTag.DATABASE_ROTATE,
            organization_id=row.organization_id,
            environment_id=row.environment.slug,
            actor="platform",
        )


def _end_old_sessions(cluster: Cluster, since: dict[str, datetime | None]) -> None:
    try:
        address = address_of(cluster)
        if not address.takes_options:
            return
        late_s = KNOWN_AFTER_S + max_request_s()
        values = [[*since], [*since.values()], KNOWN_AFTER_S, late_s]
        with administer(address) as connection:
            ((count,),) = connection.execute(END_SESSIONS, values).fetchall()
    except (EngineUnavailable, psycopg.Error) as exc:
        # The task tries again after a minute.
        log.warning("sql_old_sessions_kept", cluster=cluster.pk, said=said(exc))
        return
    if count:
        log.warning("sql_old_sessions_ended", cluster=cluster.pk, sessions=count)
