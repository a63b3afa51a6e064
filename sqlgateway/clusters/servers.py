"""Clusters: connections as administrator, capabilities, and the choice for a new database."""

import os
import re
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from zlib import crc32

import psycopg
import structlog
from django.conf import settings
from django.db.models import Count, F, FloatField, Q, QuerySet
from django.db.models.functions import Cast
from psycopg.conninfo import conninfo_to_dict

from common.errors import PlatformError
from common.server_states import is_of_server
from sqlgateway import names
from sqlgateway.clusters import silence
from sqlgateway.clusters.silence import BoundedConnection
from sqlgateway.errors import EngineUnavailable
from sqlgateway.hardening.cluster import complaints, engine_complaint, version_complaint
from sqlgateway.models import Cluster, Database

DEFAULT: Final = "default"
MAINTENANCE: Final = "postgres"
# The search_path has no schema of a tenant: an unqualified name must never find a tenant's object.
ADMIN_SETTINGS: Final = {
    "search_path": "pg_catalog",
    "statement_timeout": "60s",
    "lock_timeout": "5s",
    "idle_in_transaction_session_timeout": "60s",
    "TimeZone": "UTC",
    "DateStyle": "ISO,MDY",
    "IntervalStyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "client_min_messages": "warning",
    "standard_conforming_strings": "on",
    "quote_all_identifiers": "off",
    "default_transaction_isolation": "read committed",
    "default_transaction_deferrable": "off",
}
# For a server that is not known yet, and may be no PostgreSQL.
FIRST_SETTINGS: Final = {"search_path": "pg_catalog", "statement_timeout": "60s"}
# What only a superuser may set. The verifiers of passwords in the administrator's statements must
# appear neither in the server's log nor in its statistics, whatever its own settings are.
SUPERUSER_SETTINGS: Final = {
    "lc_messages": "C",
    "log_statement": "none",
    "log_min_error_statement": "panic",
    "log_min_duration_statement": "-1",
    "log_min_duration_sample": "-1",
    "log_transaction_sample_rate": "0",
    "debug_print_parse": "off",
    "debug_print_rewritten": "off",
    "debug_print_plan": "off",
    "pg_stat_statements.track_utility": "off",
}
# A silent host is given up after some seconds. By default TCP tries for a quarter of an hour. The
# cluster's URL may differ.
NETWORK_LIMITS: Final = {
    "tcp_user_timeout": "10000",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "2",
}
# Settings that some versions have. Capabilities are probed, not derived from the version.
OPTIONAL_SETTINGS: Final = ("transaction_timeout", "idle_session_timeout")
# The flag of a cluster behind a pooler, such as PgBouncer: it does not accept start-up options, and
# reports its own process ids.
POOLED: Final = "pooled"
UNPOOLABLE: Final = (
    "The pooler gives each transaction another server connection; it must be pool_mode = session."
)
NO_SUPERUSER: Final = (
    "The role of its URL is no superuser, and could not keep tenants from the catalog's functions "
    "(docs/production.md)."
)
# How long an administrator's statement may go beyond its statement_timeout until its server counts
# as lost.
ANSWER_MARGIN_S: Final = 5.0
TAKES_NO_WRITES: Final = (
    "SELECT pg_is_in_recovery() OR current_setting('default_transaction_read_only')::bool"
)
READ_ONLY: Final = (
    "The server takes no writes: it is a standby, or its default_transaction_read_only is on."
)
# A right that the role lacks, an object in another state (as of a standby), a statement that took
# too long, the server's own faults.
REFUSALS: Final = ("42501", "55000", "57014", "58", "XX")
QUOTED: Final = re.compile(r"""(["'])(.*?)\1""")
NO_RIGHT: Final = "permission denied to set parameter"
# Connections that are compared. One may not be enough: the pooler has several server connections.
COMPARISONS: Final = 3

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ClusterAddress:
    """The data that connections to a cluster need, as a value.

    url: the administrator's.
    network: libpq's keywords for host, port and TLS.
    flags: the server's capabilities.
    private_paths: the folders that must not appear in messages.
    """

    cluster_id: int
    url: str = field(repr=False)
    network: tuple[tuple[str, str], ...]
    flags: frozenset[str]
    private_paths: tuple[str, ...]

    def can(self, flag: str) -> bool:
        """True if the server has a capability."""
        return flag in self.flags

    def plain(self, text: str) -> str:
        """Return a message without the platform's names and folders."""
        text = names.plain(text)
        for path in self.private_paths:
            text = text.replace(path, "…")
        return text

    @property
    def takes_options(self) -> bool:
        """True if the server accepts start-up options: it was probed, and has no pooler."""
        return bool(self.flags) and POOLED not in self.flags


def address_of(cluster: Cluster) -> ClusterAddress:
    """Return a cluster's address; the first call reads the server's capabilities.

    Raises EngineUnavailable.
    """
    if not cluster.flags:
        _probe(cluster)
    url = cluster.url
    parts = conninfo_to_dict(url)
    network = {
        key: str(value)
        for key, value in {**NETWORK_LIMITS, **parts}.items()
        if key not in {"user", "password", "dbname", "options", "application_name"}
    }
    return ClusterAddress(
        cluster_id=cluster.pk,
        url=url,
        network=tuple(sorted(network.items())),
        flags=frozenset(cluster.flags),
        private_paths=tuple(cluster.private_paths),
    )


def address_without_row(url: str) -> ClusterAddress:
    """Return the address of a server that is no cluster yet, with a key of its own.

    What is remembered of a server, as that it is silent, is remembered by the key.
    """
    return ClusterAddress(-1 - crc32(url.encode()), url, (), frozenset(), ())


def answers(cluster: Cluster) -> bool:
    """True if a cluster accepts connections and writes now."""
    try:
        with administer(address_of(cluster)) as connection:
            return not takes_no_writes(connection)
    except EngineUnavailable:
        return False


def takes_no_writes(connection: psycopg.Connection) -> bool:
    """True if the server refuses writes: it is a standby, or is read only by its settings."""
    row = connection.execute(TAKES_NO_WRITES).fetchone()
    return row is not None and bool(row[0])


def default() -> Cluster:
    """Return the configured cluster; create or update its row.

    Raises EngineUnavailable if none is configured.
    """
    url = settings.SQL.cluster_url
    if not url:
        raise EngineUnavailable("No cluster for tenants' databases is configured.")
    cluster = Cluster.objects.filter(name=DEFAULT).first()
    if cluster is None:
        made = Cluster(name=DEFAULT)
        made.url = url
        cluster, _ = Cluster.objects.get_or_create(
            name=DEFAULT, defaults={"url_secret": made.url_secret}
        )
    if cluster.url != url:
        cluster.url = url
        cluster.flags = []
        cluster.save(update_fields=["url_secret", "flags"])
    return cluster


@contextmanager
def administer(address: ClusterAddress, dbname: str = MAINTENANCE) -> Iterator[psycopg.Connection]:
    """Yield an autocommit connection as the cluster's administrator, and close it afterwards.

    Raises EngineUnavailable if the server refuses or loses it, or is in a state in which it refuses
    a statement. What the server said names hosts and roles: it is logged, and for operators.
    """
    try:
        connection = connect_as_administrator(address, dbname)
    except psycopg.Error as exc:
        raise _unavailable("sql_cluster_away", address, exc) from None
    try:
        yield connection
    except psycopg.Error as exc:
        if connection.closed:
            raise _unavailable("sql_cluster_lost", address, exc) from None
        state = exc.sqlstate or ""
        if not (is_of_server(state) or state.startswith(REFUSALS)):
            raise
        raise _unavailable("sql_cluster_refuses", address, exc) from None
    finally:
        connection.close()


def _unavailable(event: str, address: ClusterAddress, exc: psycopg.Error) -> EngineUnavailable:
    """Log why a cluster cannot be used now, and return the error for callers."""
    error = unavailable(exc)
    if NO_RIGHT in error.for_operators:
        # Of the start-up packet: the role was a superuser's when the server was first asked.
        error.for_operators, error.is_unfit = NO_SUPERUSER, True
    kind, words = type(exc).__name__, error.for_operators
    log.warning(event, cluster=address.cluster_id, kind=kind, said=words)
    return error


def unavailable(exc: Exception) -> EngineUnavailable:
    """Return the error that answers an error of a server, with what it said for operators."""
    error = EngineUnavailable()
    error.for_operators = said(exc)
    return error


def said(exc: Exception) -> str:
    """Return the first line of what libpq or a server said, with the SQLSTATE, for operators."""
    if isinstance(exc, PlatformError) and exc.for_operators:
        return exc.for_operators
    line = str(exc).strip().partition("\n")[0] or type(exc).__name__
    state = exc.sqlstate if isinstance(exc, psycopg.Error) else None
    return f"{line} ({state})" if state else line


def connect_as_administrator(
    address: ClusterAddress, dbname: str = MAINTENANCE
) -> BoundedConnection:
    """Return an autocommit connection as the cluster's administrator, which the caller closes.

    Raises psycopg.Error.
    """
    # pg_stat_activity shows which process it serves.
    given = {"dbname": dbname, "application_name": f"zonal-admin-{os.getpid()}"}
    # The first connection asks what the server is. It sets no password.
    values = {**ADMIN_SETTINGS, **SUPERUSER_SETTINGS} if address.flags else FIRST_SETTINGS
    return connect_with(address, address.url, values, given)


def connect_with(
    address: ClusterAddress, conninfo: str, values: Mapping[str, str], given: Mapping[str, str]
) -> BoundedConnection:
    """Open an autocommit connection with these settings, one of which is statement_timeout.

    given: more keywords of libpq. Raises psycopg.Error, whose text has no part of the password.
    """
    try:
        parts = conninfo_to_dict(conninfo)
    except psycopg.ProgrammingError:
        raise psycopg.ProgrammingError("its URL cannot be read") from None
    words = {**NETWORK_LIMITS, **parts, **given}
    words["connect_timeout"] = str(silence.CONNECT_TIMEOUT_S)
    if address.takes_options:
        words["options"] = " ".join(f"-c {name}={_escaped(values[name])}" for name in values)
    try:
        with silence.attempt(address.cluster_id):
            connection = BoundedConnection.connect(
                **words,  # type: ignore[arg-type]  # libpq's words, all text
                autocommit=True,
                prepare_threshold=None,
            )
    except psycopg.Error as exc:
        raise type(exc)(_without_secrets(str(exc), conninfo)) from None
    limit_s = float(values["statement_timeout"].removesuffix("s"))
    connection.answers_within_s = limit_s + ANSWER_MARGIN_S
    if address.takes_options:
        return connection
    try:
        # By SET: a query would resolve names before search_path is set.
        connection.execute("; ".join(f"SET {name} = '{value}'" for name, value in values.items()))
    except BaseException:
        connection.close()
        raise
    return connection


def _escaped(value: str) -> str:
    """Return a value with a backslash before blanks, as the server reads its options."""
    return value.replace(" ", "\\ ")


def _without_secrets(text: str, conninfo: str) -> str:
    """Return libpq's words without what stands where a URL has its password.

    With a character that had to be escaped, libpq takes a part of the password for a host.
    """
    secret = conninfo.partition("://")[2].rpartition("@")[0].partition(":")[2]

    def shown(found: re.Match[str]) -> str:
        return '"…"' if found[2] and found[2] in secret else found[0]

    text = QUOTED.sub(shown, text)
    return text.replace(secret, "…") if secret else text


def system_identifier(connection: psycopg.Connection) -> str:
    """Return the number that initdb gave the server, which identifies it at any address."""
    row = connection.execute("SELECT system_identifier::text FROM pg_control_system()").fetchone()
    return str(row[0]) if row is not None else ""


def _probe(cluster: Cluster) -> None:
    bare = ClusterAddress(cluster.pk, cluster.url, (), frozenset(), ())
    started = time.monotonic()
    with administer(bare) as connection:
        try:
            _read(cluster, bare, connection)
        except psycopg.Error as exc:
            if connection.closed:
                raise
            raise unusable(said(exc), cluster) from None
    cluster.save(update_fields=["server_version", "system_identifier", "flags", "private_paths"])
    elapsed_ms = round((time.monotonic() - started) * 1000)
    log.info("sql_cluster_probed", cluster=cluster.pk, flags=cluster.flags, elapsed_ms=elapsed_ms)


def _read(cluster: Cluster, bare: ClusterAddress, connection: psycopg.Connection) -> None:
    """Fill in what the server is and can do."""
    sentence = unfit(bare, connection)
    if sentence:
        raise unusable(sentence, cluster)
    cluster.server_version = connection.info.server_version
    cluster.system_identifier = system_identifier(connection)
    cluster.flags = sorted(_flags(connection))
    cluster.private_paths = _private_paths(connection)
    _complain(cluster, connection)


def unfit(bare: ClusterAddress, connection: psycopg.Connection) -> str:
    """Return why a server cannot be used as a cluster, whatever else is right; "" if it can.

    Asked when a cluster is added, at the first connection to ZSQL_CLUSTER_URL, and by
    ``listclusters`` and ``doctor``. What a session can set is not asked for: ADMIN_SETTINGS and
    the start-up packet of tenants' sessions set it, whatever the server's defaults are.
    """
    if sentence := engine_complaint(connection):
        return sentence
    row = connection.execute(
        "SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user"
    ).fetchone()
    if row is None or not row[0]:
        return NO_SUPERUSER
    if takes_no_writes(connection):
        return READ_ONLY
    return UNPOOLABLE if shares_servers(bare, connection) else ""


def unusable(reason: str, cluster: Cluster) -> EngineUnavailable:
    """Return the error for a server that answers but cannot be used, and log the reason."""
    log.warning("sql_cluster_unfit", cluster=cluster.pk, reason=reason)
    error = EngineUnavailable("The database server must be set up.")
    error.for_operators, error.is_unfit = reason, True
    return error


def _complain(cluster: Cluster, connection: psycopg.Connection) -> None:
    """Log findings about a server; in production refuse one with known security holes."""
    for sentence in complaints(connection):
        log.warning("sql_cluster_not_hard", cluster=cluster.pk, sentence=sentence)
    too_old = version_complaint(connection.info.server_version)
    if too_old is not None and settings.IS_PRODUCTION:
        raise unusable(too_old, cluster)


def shares_servers(address: ClusterAddress, connection: psycopg.Connection) -> bool:
    """True if a pooler shares this connection's server connection with others.

    Raises EngineUnavailable.
    """
    own = _backend_pid(connection)
    if own == connection.info.backend_pid:
        return False
    for _ in range(COMPARISONS):
        with administer(address) as other:
            if _backend_pid(other) == own:
                return True
    return False


def _backend_pid(connection: psycopg.Connection) -> int:
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    return int(row[0]) if row is not None else 0


def _flags(connection: psycopg.Connection) -> set[str]:
    flags = {"cancel", "serializable", "explain_json"}
    if connection.info.backend_pid != _backend_pid(connection):
        flags.add(POOLED)
    rows = connection.execute(
        "SELECT name FROM pg_settings WHERE name = ANY(%s)", [list(OPTIONAL_SETTINGS)]
    )
    flags.update(name for (name,) in rows)
    flags.add("template")
    return flags


def _private_paths(connection: psycopg.Connection) -> list[str]:
    """Return the folders that the server's messages may name, longest first."""
    names = ("data_directory", "config_file", "hba_file", "unix_socket_directories")
    settings = connection.execute(
        "SELECT setting FROM pg_settings WHERE name = ANY(%s)", [list(names)]
    )
    programs = connection.execute("SELECT setting FROM pg_config WHERE name LIKE '%DIR'")
    found = {str(row[0]) for rows in (settings, programs) for row in rows}
    return sorted((path for path in found if path.startswith("/")), key=len, reverse=True)


def with_counts() -> QuerySet[Any]:
    """Return all clusters, annotated with numbers of databases.

    placed: all databases, including those in stock. in_stock: the databases in stock.
    Raises EngineUnavailable if no cluster is configured.
    """
    default()
    return Cluster.objects.annotate(
        placed=Count("databases", filter=~Q(databases__state=Database.State.DROPPED)),
        in_stock=Count("databases", filter=Q(databases__state=Database.State.STOCK)),
    )


def has_room(cluster: Cluster) -> bool:
    """True if another database may be placed on a cluster."""
    return with_counts().filter(pk=cluster.pk, placed__lt=F("capacity")).exists()


def open_to(organization_id: int | None) -> QuerySet[Any]:
    """Return the open clusters for an organization's databases, with numbers as ``with_counts``.

    They are its own ones if it has any, otherwise those of all. None: of all.
    """
    open_ones = with_counts().filter(state=Cluster.State.OPEN)
    if organization_id is not None:
        own = open_ones.filter(reserved_for=organization_id)
        if own.exists():
            return own
    return open_ones.filter(reserved_for=None)


def emptiest(
    organization_id: int | None, *, major: int = 0, without: Collection[int] = ()
) -> Cluster:
    """Return the cluster of ``open_to`` with the smallest share of its capacity in use.

    major: the oldest acceptable version of PostgreSQL. without: keys of clusters to exclude.
    Each concurrent caller may exceed the capacity by one: it is a plan, not a limit of the server.
    Raises EngineUnavailable if every one is full.
    """
    with_room = open_to(organization_id).filter(placed__lt=F("capacity")).exclude(pk__in=without)
    if major:
        with_room = with_room.filter(server_version__gte=major * 10_000)
    share = Cast("placed", FloatField()) / F("capacity")
    cluster: Cluster | None = with_room.order_by(share, "id").first()
    if cluster is None:
        raise EngineUnavailable("No cluster has room for another database.")
    return cluster
