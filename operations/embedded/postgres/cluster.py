"""One PostgreSQL cluster: create, start, recover after a crash, stop."""

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Literal
from urllib.parse import quote

import psycopg
from psycopg import pq, sql

from common.machine.errors import ClusterError
from common.machine.files import Lock, read_text, write_private
from common.machine.folders import PORT, Folders, make_passable, make_socket_dir
from common.machine.owners import SystemUser, give, owner_of
from common.machine.postgres_programs import Binaries
from operations.embedded.supervisor import PROC, Launch, Steps, end, processes_in

# Fast (end sessions, write a checkpoint), then immediate (recover at the next start).
SERVER_STOP: Final[Steps] = (
    (signal.SIGINT, 20.0),
    (signal.SIGQUIT, 5.0),
    (signal.SIGKILL, 5.0),
)
BACKEND_STOP: Final[Steps] = ((signal.SIGQUIT, 2.0), (signal.SIGKILL, 5.0))
# Passwords for everyone, over the socket only. The last lines reject everything else explicitly, so
# that a line appended by mistake has no effect.
PG_HBA: Final = """\
local  all          all       scram-sha-256
local  replication  all       reject
host   all          all  all  reject
host   replication  all  all  reject
"""
COMMON: Final = {
    "password_encryption": "scram-sha-256",
    "authentication_timeout": "10s",
    "shared_preload_libraries": "",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
    # No replicas and no two-phase commits, so that no prepared transaction can remain.
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_replication_slots": "0",
    "max_prepared_transactions": "0",
    "max_logical_replication_workers": "0",
    # Memory: several clusters share a small machine, and each is mostly idle.
    "shared_buffers": "32MB",
    "huge_pages": "off",
    "work_mem": "4MB",
    "maintenance_work_mem": "32MB",
    "max_wal_size": "256MB",
    "max_worker_processes": "4",
    "max_parallel_workers": "2",
    "max_parallel_workers_per_gather": "1",
    "autovacuum_max_workers": "2",
    # Tenants may use half of the locks (lock_guard.py); twice the default leaves them the default
    # number.
    "max_locks_per_transaction": "128",
    # JIT compilation costs more than it saves for results of this size, and uses memory.
    "jit": "off",
    # Errors are reported to the client. The log has no statements and no DETAIL values, which are
    # tenants' data or, in the control plane, secrets.
    "log_destination": "stderr",
    "logging_collector": "off",
    "log_line_prefix": "",
    "log_error_verbosity": "terse",
    "log_min_error_statement": "panic",
    "log_checkpoints": "off",
}
# No I/O worker processes: reads of this size do not benefit from them.
SINCE_18: Final = {"io_method": "sync"}
# A temporary cluster may be lost, and tests create many databases.
NOT_DURABLE: Final = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
}
INITDB_TIMEOUT_S: Final = 180
# Code point order with Unicode case rules, the same on every machine.
BUILTIN_LOCALES_SINCE: Final = 17
LOCALE: Final = ("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
OLDER_LOCALE: Final = ("--locale=C.UTF-8",)
PRIVATE_UMASK: Final = 0o077
READY_TIMEOUT_S: Final = 60.0
POLL_S: Final = 0.02
GIB: Final = 1024**3


@dataclass(frozen=True, kw_only=True)
class ClusterSpec:
    """What a cluster is for.

    superuser: the bootstrap role. owner: a second role without superuser rights, which owns a
    database of the same name and is the one in `url`; None puts the superuser there.
    address_space_bytes: RLIMIT_AS of each server process, so that one query cannot take the
    machine's memory.
    """

    name: Literal["control", "tenants"]
    superuser: str
    max_connections: int
    naptime_s: int
    owner: str | None = None
    owner_creates_databases: bool = False
    address_space_bytes: int | None = None
    durable: bool = True


CONTROL: Final = ClusterSpec(
    name="control", superuser="zonal_superuser", owner="zonal", max_connections=200, naptime_s=60
)
# The cluster has many, mostly idle databases: with a short naptime a worker would start several
# times a second without work.
TENANTS: Final = ClusterSpec(
    name="tenants",
    superuser="zonal_provisioner",
    max_connections=150,
    naptime_s=300,
    address_space_bytes=GIB,
)


class LocalCluster:
    """A cluster below a home folder: `data`, `run` (the socket), `lock` and its passwords.

    Order: prepare, then start and wait_ready (or hand `launch()` to a supervisor), configure_roles,
    stop, release. All of them block and need no event loop.
    """

    def __init__(self, spec: ClusterSpec, folders: Folders, binaries: Binaries) -> None:
        """Set the paths; create no files."""
        self.spec = spec
        self.home = folders.cluster_home(spec.name)
        self.data = self.home / "data"
        self._folders = folders
        self._binaries = binaries
        self._lock = Lock(self.home / "lock")
        self._owner: SystemUser | None = None
        self._socket_dir: Path | None = None
        self._server: subprocess.Popen[bytes] | None = None

    @property
    def socket_dir(self) -> Path:
        """The folder of the cluster's socket; known once it is prepared."""
        if self._socket_dir is None:
            sentence = f"The {self.spec.name} cluster is not prepared."
            raise ClusterError(sentence)
        return self._socket_dir

    @property
    def url(self) -> str:
        """The URL for the platform: the owner's database, else the superuser's."""
        role = self.spec.owner or self.spec.superuser
        return self._url(role, database=self.spec.owner or "postgres")

    @property
    def superuser_url(self) -> str:
        """The URL of the bootstrap role, for this package and for tests."""
        return self._url(self.spec.superuser, database="postgres")

    def prepare(self) -> None:
        """Take the lock, create missing files, clean up after a crash.

        Raises AlreadyRunningError if another process has the cluster, ClusterError if it cannot be
        created or was created by another major version.
        """
        self._owner = owner_of(self.spec.name)
        if self._owner:
            make_passable(self._folders.clusters_dir)
        self.home.mkdir(parents=True, exist_ok=True)
        self.home.chmod(0o711 if self._owner else 0o700)
        self._lock.take(
            refusal=f"The {self.spec.name} cluster in {self.home} is in use by {{holder}}."
        )
        self._socket_dir = make_socket_dir(self.home, self._owner)
        for role in filter(None, (self.spec.superuser, self.spec.owner)):
            if not self._password_file(role).exists():
                write_private(self._password_file(role), secrets.token_urlsafe(32))
        if not self.data.exists():
            self._initialize()
        self._check_major()
        self.recover()

    def launch(self) -> Launch:
        """Return the server's command; its log goes to standard error."""
        quoted = '"' + os.fspath(self.socket_dir).replace('"', '""') + '"'
        # These override every file and ALTER SYSTEM.
        decisive = {
            "config_file": str(self._configuration),
            "hba_file": str(self._rules),
            "listen_addresses": "",
            "port": str(PORT),
            "unix_socket_directories": quoted,
            "unix_socket_permissions": "0700",
            "cluster_name": f"zonal-{self.spec.name}",
        }
        words = (word for key, value in decisive.items() for word in ("-c", f"{key}={value}"))
        return Launch(
            command=(self._binaries.path("postgres"), "-D", str(self.data), *words),
            owner=self._owner,
            # Not this process's environment, which has secrets: the server runs tenants' SQL.
            env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
            cwd=self.home,
            umask=PRIVATE_UMASK,
            address_space_bytes=self.spec.address_space_bytes,
            # If this process is killed, the server does a fast shutdown, which ends its sessions
            # first.
            death_signal=signal.SIGINT,
        )

    def recover(self) -> None:
        """Prepare the next start: end orphans, remove stale files, write the configuration.

        The configuration is written each time, so that it always matches the release.
        """
        end_servers(self.data)
        self.stop()
        if PROC.is_dir():
            # The process id in such a file may belong to another process by now; PostgreSQL would
            # then refuse to start.
            (self.data / "postmaster.pid").unlink(missing_ok=True)
            (self.socket_dir / f".s.PGSQL.{PORT}.lock").unlink(missing_ok=True)
        self._write_configuration()

    def start(self, output: IO[bytes]) -> None:
        """Start the server without a supervisor; the calling thread must outlive it."""
        launch = self.launch()
        self._server = subprocess.Popen(  # noqa: S603 - the server that this package chose
            launch.argv(),
            env=launch.env,
            cwd=launch.cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Ctrl-C does not reach it.
            process_group=0,
        )

    def is_ready(self) -> bool:
        """True if the server accepts connections; needs no password and logs nothing."""
        conninfo = f"host='{_conninfo(self.socket_dir)}' port={PORT} dbname=postgres"
        return pq.PGconn.ping(conninfo.encode()) == pq.Ping.OK

    def wait_ready(self, *, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Wait for the server to accept connections. Raises ClusterError if it ends or is late."""
        deadline = time.monotonic() + timeout_s
        while not self.is_ready():
            if self._server is not None and self._server.poll() is not None:
                sentence = f"The {self.spec.name} cluster ended while starting."
                raise ClusterError(sentence)
            if time.monotonic() > deadline:
                sentence = f"The {self.spec.name} cluster took too long to start."
                raise ClusterError(sentence)
            time.sleep(POLL_S)

    def configure_roles(self) -> None:
        """Set the owner role's password, rights and database, in a cluster that is ready.

        Raises ClusterError if the superuser cannot log in or the connection is lost.
        """
        if self.spec.owner is None:
            return
        try:
            _ensure_owner(
                self.superuser_url,
                self.spec.owner,
                password=read_text(self._password_file(self.spec.owner)),
                creates_databases=self.spec.owner_creates_databases,
            )
        except psycopg.Error as error:
            sentence = f"The {self.spec.name} cluster in {self.home} cannot be set up: {error}"
            raise ClusterError(sentence) from error

    def stop(self) -> None:
        """Stop the server of `start`, if it runs: fast mode, then immediate."""
        if self._server is None:
            return
        for signum, wait_s in SERVER_STOP:
            self._server.send_signal(signum)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._server.wait(wait_s)
                break
        self._server = None

    def release(self) -> None:
        """Release the lock, after the server stopped."""
        self._lock.release()

    def remove(self) -> None:
        """Delete the cluster and its socket folder, after the server stopped."""
        shutil.rmtree(self.home, ignore_errors=True)
        if self._socket_dir is not None:
            shutil.rmtree(self._socket_dir, ignore_errors=True)

    def _initialize(self) -> None:
        """Create a data folder whose server requires a password from every role.

        The folder gets its name only when it is complete: a killed initdb leaves a folder that the
        next start removes. Raises ClusterError with the output of initdb.
        """
        scratch = self.home / "initdb"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        give(scratch, self._owner, mode=0o700)
        password_file = scratch / "password"
        write_private(password_file, read_text(self._password_file(self.spec.superuser)))
        give(password_file, self._owner, mode=0o600)
        options = {
            "--pgdata": str(scratch / "data"),
            "--username": self.spec.superuser,
            "--auth": "scram-sha-256",
            "--pwfile": str(password_file),
            "--encoding": "UTF8",
        }
        flags = ["--data-checksums", "--no-instructions"]
        flags += [] if self.spec.durable else ["--no-sync"]
        flags += LOCALE if self._binaries.major >= BUILTIN_LOCALES_SINCE else OLDER_LOCALE
        words = (word for option in options.items() for word in option)
        launch = Launch(
            command=(self._binaries.path("initdb"), *words, *flags),
            owner=self._owner,
            env={"PATH": str(self._binaries.bindir), "LC_ALL": "C", "TZ": "UTC"},
            cwd=scratch,
            umask=PRIVATE_UMASK,
        )
        try:
            subprocess.run(  # noqa: S603 - the program that this package chose
                launch.argv(),
                env=launch.env,
                cwd=launch.cwd,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=INITDB_TIMEOUT_S,
                check=True,
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            sentence = f"PostgreSQL could not create {self.data}:\n{error.output or error}"
            raise ClusterError(sentence) from None
        (scratch / "data").rename(self.data)
        shutil.rmtree(scratch)

    def _write_configuration(self) -> None:
        """Write outside the data folder, where the server's user can read but not change files.

        Root also never writes into another user's folder, where it could follow a planted link.
        """
        settings = {
            **COMMON,
            **(SINCE_18 if self._binaries.major >= 18 else {}),
            **({} if self.spec.durable else NOT_DURABLE),
            "max_connections": str(self.spec.max_connections),
            "autovacuum_naptime": f"{self.spec.naptime_s}s",
        }
        lines = "".join(f"{name} = '{_escaped(value)}'\n" for name, value in settings.items())
        head = "# Written at every start; changes are lost.\n"
        write_private(self._configuration, head + lines, mode=0o644)
        write_private(self._rules, PG_HBA, mode=0o644)

    @property
    def _configuration(self) -> Path:
        return self.home / "postgresql.conf"

    @property
    def _rules(self) -> Path:
        return self.home / "pg_hba.conf"

    def _check_major(self) -> None:
        made_by = read_text(self.data / "PG_VERSION")
        if made_by != str(self._binaries.major):
            sentence = (
                f"{self.data} was created by PostgreSQL {made_by or 'unknown'}, and "
                f"{self._binaries.bindir} is {self._binaries.major}. Set ZPG_BINDIR to the bin "
                "folder of the former, or move the data with pg_upgrade."
            )
            raise ClusterError(sentence)

    def _password_file(self, role: str) -> Path:
        return self.home / f"{role}.password"

    def _url(self, role: str, *, database: str) -> str:
        password = quote(read_text(self._password_file(role)), safe="")
        host = quote(str(self.socket_dir), safe="")
        return f"postgresql://{role}:{password}@/{database}?host={host}&port={PORT}"


def end_servers(data: Path) -> None:
    """End every server process of a data folder: the postmaster cleanly, then the rest.

    The caller must hold the cluster's lock, which proves that no supervisor runs them. Servers are
    identified by program and working folder, never by a number in a file.
    Raises ClusterError if one does not end.
    """

    def servers() -> set[int]:
        return processes_in(data.resolve(), program="postgres")

    first_line = read_text(data / "postmaster.pid").partition("\n")[0].strip()
    postmaster = {int(first_line)} if first_line.isdecimal() else set()
    end(lambda: postmaster & servers(), SERVER_STOP)
    # Backends without a postmaster keep the shared memory and block the next start.
    if survivors := end(servers, BACKEND_STOP):
        pids = ", ".join(map(str, sorted(survivors)))
        sentence = f"An earlier PostgreSQL does not end (process {pids})."
        raise ClusterError(sentence)


def _conninfo(folder: Path) -> str:
    return str(folder).replace("\\", "\\\\").replace("'", "\\'")


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "''")


def _ensure_owner(
    superuser_url: str, owner: str, *, password: str, creates_databases: bool
) -> None:
    """Create or update the owner role and its database of the same name.

    The password is sent as a SCRAM verifier, so that even the server does not see the plain text.
    """
    with psycopg.connect(superuser_url, autocommit=True) as connection:
        verifier = connection.pgconn.encrypt_password(
            password.encode(), owner.encode(), b"scram-sha-256"
        ).decode()
        role = sql.Identifier(owner)
        if not _exists(connection, "SELECT FROM pg_roles WHERE rolname = %s", owner):
            connection.execute(sql.SQL("CREATE ROLE {}").format(role))
        rights = sql.SQL("CREATEDB" if creates_databases else "NOCREATEDB")
        connection.execute(
            sql.SQL("ALTER ROLE {} LOGIN NOSUPERUSER NOCREATEROLE {} PASSWORD {}").format(
                role, rights, sql.Literal(verifier)
            )
        )
        if not _exists(connection, "SELECT FROM pg_database WHERE datname = %s", owner):
            connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(role, role))


def _exists(connection: psycopg.Connection, query: str, name: str) -> bool:
    return connection.execute(query, [name]).fetchone() is not None
