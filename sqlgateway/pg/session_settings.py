"""Settings that a tenant's session starts with: every setting that its role could have changed.

A setting in the start-up packet overrides a value of ALTER ROLE or ALTER DATABASE, and remains
after RESET ALL and DISCARD ALL. So every setting that a role may change is sent, with the cluster's
value if the platform has none. The server lists these settings.
"""

import threading
import time
from typing import Final

import psycopg
import structlog
from django.conf import settings
from psycopg import sql

from common.permissions import Role
from sqlgateway.clusters.servers import ClusterAddress, administer, said
from sqlgateway.hardening.cluster import TRUSTED

# A change of the server's configuration reaches new connections after this time.
FRESH_S: Final = 600.0
# Between cancelling a late query and terminating its backend.
GRACE_MS: Final = 500
# Of a session, for each sort.
WORK_MEM_KIB: Final = 4_096
# PostgreSQL accepts 10,000 bytes, with the user's, the database's and the application's names.
LIMIT_BYTES: Final = 9_500
# A value from the administrator's role or connection is not the cluster's value. Settings of a
# transaction cannot be kept for a role. libpq itself sends application_name and client_encoding.
KEEPABLE: Final = """
SELECT name,
       coalesce(CASE WHEN source IN ('user', 'database', 'database user', 'client')
                     THEN boot_val ELSE reset_val END, '')
FROM pg_settings
WHERE (context = 'user' OR context = 'backend' AND %s)
  AND name !~ '^transaction_(isolation|read_only|deferrable)$'
  AND name NOT IN ('application_name', 'client_encoding')
ORDER BY name
"""
# Where the library has another name than the extension.
LIBRARIES: Final = {"intarray": "_int"}
APPLICATION_NAME: Final = "zonal"
# Schemas of the tenant only. PostgreSQL searches pg_catalog before them.
SEARCH_PATH: Final = '"$user",public'
READ_ONLY_DEFAULT: Final = "default_transaction_read_only"
LIBPQS_OWN: Final = {"application_name": APPLICATION_NAME, "client_encoding": "UTF8"}

log = structlog.get_logger(__name__)


class ClusterSettings:
    """Each cluster's values of the settings that a role may change, read again after FRESH_S."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[int, tuple[float, dict[str, str]]] = {}

    def of(self, address: ClusterAddress) -> dict[str, str]:
        """Return values by name, in the units of pg_settings. Raises EngineUnavailable."""
        known = self._known.get(address.cluster_id)
        if known is not None and known[0] > time.monotonic():
            return known[1]
        values = _read(address)
        with self._lock:
            self._known[address.cluster_id] = (time.monotonic() + FRESH_S, values)
        return values

    def forget(self, address: ClusterAddress) -> None:
        """Forget a cluster's values: the server may have been upgraded."""
        with self._lock:
            self._known.pop(address.cluster_id, None)


def _read(address: ClusterAddress) -> dict[str, str]:
    started = time.monotonic()
    with administer(address) as connection:
        for (extension,) in connection.execute(
            "SELECT name FROM pg_available_extensions WHERE name = ANY(%s)", [sorted(TRUSTED)]
        ).fetchall():
            _load(connection, extension)
        # Without start-up options: settings of a backend can be set in the start-up packet only.
        rows = connection.execute(KEEPABLE, [address.takes_options]).fetchall()
        values: dict[str, str] = dict(rows)
    elapsed_ms = round((time.monotonic() - started) * 1000)
    log.info(
        "sql_settings_read", cluster=address.cluster_id, count=len(values), elapsed_ms=elapsed_ms
    )
    return values


def _load(connection: psycopg.Connection, extension: str) -> None:
    """Load an extension's library, which declares its settings; some extensions have no library."""
    library = f"$libdir/{LIBRARIES.get(extension, extension)}"
    try:
        connection.execute(sql.SQL("LOAD {}").format(sql.Literal(library)))
    except psycopg.DatabaseError as exc:
        log.debug("sql_library_not_loaded", extension=extension, said=said(exc))


def startup_options(address: ClusterAddress, role: Role, *, is_copy: bool = False) -> str:
    """Return the start-up packet's options for a tenant's session.

    Extensions' settings come last. Those that exceed the packet's size are left out; a change of
    these is undone only by the check of roles (changed_roles.py).
    is_copy: for a copy, which goes on whatever the tenant has changed about its role.
    Raises EngineUnavailable.
    """
    values = _values(address, role)
    if role != "reader" and not is_copy:
        # The server's own value applies: an operator, or a failover, may have made it read only. If
        # it is the role's, the login is refused, and the role repaired (pool.py).
        values.pop(READ_ONLY_DEFAULT, None)
    options = ""
    for name in sorted(values, key=lambda name: "." in name):
        option = f"-c{name}={_escaped(values[name])} "
        if len(options) + len(option) > LIMIT_BYTES:
            log.warning("sql_settings_too_long", cluster=address.cluster_id, left_out=name)
            break
        options += option
    return options


def settings_statement(address: ClusterAddress, role: Role) -> bytes:
    r"""Return a statement that gives a session what ``startup_options`` would give it.

    For a server behind a pooler. Not by SET, which cannot set an empty list. Names are qualified,
    because the search_path may be the tenant's. In E'' a \ does not depend on settings.
    Raises EngineUnavailable.
    """
    values = _values(address, role) | LIBPQS_OWN
    # First the setting that would add quotes to names in the values of others.
    given = sorted(values.items(), key=lambda pair: pair[0] != "quote_all_identifiers")
    rows = ",".join(f"({_literal(name)},{_literal(value)})" for name, value in given)
    text = (
        "SELECT pg_catalog.count(pg_catalog.set_config(given.name, given.value, false))"  # noqa: S608 - quoted
        f" FROM (VALUES {rows}) AS given(name, value)"
    )
    return text.encode()


def _values(address: ClusterAddress, role: Role) -> dict[str, str]:
    clusters_own = CLUSTER_SETTINGS.of(address)
    own = _platforms_own(role)
    return clusters_own | {name: value for name, value in own.items() if name in clusters_own}


def _literal(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "''")
    return f"E'{escaped}'" if "\\" in value else f"'{escaped}'"


def _escaped(value: str) -> str:
    r"""Return a value with \ before blanks and backslashes, as the server reads its options."""
    return "".join(f"\\{char}" if char == "\\" or char.isspace() else char for char in value)


def _platforms_own(role: Role) -> dict[str, str]:
    timeout_ms = str(settings.SQL.timeout_ms + GRACE_MS)
    return {
        "statement_timeout": timeout_ms,
        "transaction_timeout": timeout_ms,
        "idle_in_transaction_session_timeout": timeout_ms,
        "idle_session_timeout": "0",
        "lock_timeout": timeout_ms,
        "search_path": SEARCH_PATH,
        "TimeZone": "UTC",
        "DateStyle": "ISO,MDY",
        "IntervalStyle": "iso_8601",
        "bytea_output": "hex",
        "extra_float_digits": "1",
        "xmloption": "content",
        "work_mem": f"{WORK_MEM_KIB}kB",
        "max_parallel_workers_per_gather": "1",
        READ_ONLY_DEFAULT: "on" if role == "reader" else "off",
        "default_transaction_isolation": "read committed",
        "default_transaction_deferrable": "off",
        "row_security": "on",
        "standard_conforming_strings": "on",
        "client_min_messages": "notice",
        "client_connection_check_interval": "2000",
        "jit": "off",
    }


CLUSTER_SETTINGS: Final = ClusterSettings()
