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
from common.machine.owners import SystemUser, owner_of
from common.machine.postgres_programs import Binaries
from operations.embedded.postgres import data_folder
from operations.embedded.postgres.data_folder import initialize
from operations.embedded.supervisor.known_processes import (
    SERVER_STOP_STEPS,
    clear_stale_files,
    end_servers,
)
from operations.embedded.supervisor.launch import PRIVATE_UMASK, Launch, spawn

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
            initialize(
                self.data,
                self._binaries,
                owner=self._owner,
                superuser=self.spec.superuser,
                password=read_text(self._password_file(self.spec.superuser)),
                durable=self.spec.durable,
            )
        self._check_major()
        self.recover()

    def launch(self) -> Launch:
        """Return the server's command; its log goes to standard error."""
        decisive = data_folder.decisive_arguments(
            self.spec.name,
            configuration=self._configuration,
            rules=self._rules,
            socket_dir=self.socket_dir,
            port=PORT,
        )
        return Launch(
            command=(self._binaries.path("postgres"), "-D", str(self.data), *decisive),
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
        clear_stale_files(self.data, self.socket_dir, port=PORT)
        self._write_configuration()

    def start(self, output: IO[bytes]) -> None:
        """Start the server without a supervisor; the calling thread must outlive it."""
        self._server = spawn(self.launch(), output=output)

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
        for signum, wait_s in SERVER_STOP_STEPS:
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

    def _write_configuration(self) -> None:
        """Write outside the data folder, where the server's user can read but not change files.

        Root also never writes into another user's folder, where it could follow a planted link.
        """
        settings = data_folder.settings_for(
            self._binaries.major,
            max_connections=self.spec.max_connections,
            naptime_s=self.spec.naptime_s,
            durable=self.spec.durable,
        )
        write_private(self._configuration, data_folder.postgresql_conf(settings), mode=0o644)
        write_private(self._rules, data_folder.PG_HBA, mode=0o644)

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


def _conninfo(folder: Path) -> str:
    return str(folder).replace("\\", "\\\\").replace("'", "\\'")


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
