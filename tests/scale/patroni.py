"""PostgreSQL by Patroni, behind HAProxy, as docs/scaling.md configures them.

Each node, etcd and HAProxy are on a host of their own (tests/scale/network.py), and run as Debian's
user `postgres`. There is one etcd: how etcd itself fails over is not what these tests show.
"""

import json
import os
import pwd
import re
import secrets
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psycopg
import yaml

from common.machine.owners import SystemUser
from tests.documents.blocks import blocks
from tests.scale.network import Host, Network
from tests.waiting import wait_until

PAGE: Final = "docs/scaling.md"
BINARIES: Final = "/usr/lib/postgresql/15/bin"
PROGRAMS: Final = ("patroni", "etcd", "haproxy", "setpriv", "nsenter", "ip")
SUPERUSER: Final = "zonal"
START_S: Final = 120.0
# What the test needs beside what the page advises: a small machine, and what `checkisolation` asks.
PARAMETERS: Final = {
    "max_connections": 150,
    "max_locks_per_transaction": 128,
    "max_worker_processes": 4,
    "shared_buffers": "32MB",
    "jit": "off",
}
PROXY: Final = """\
global
    maxconn 1000
"""
SERVERS: Final = re.compile(r"^    server .*\n", re.MULTILINE)


def advised() -> dict[str, Any]:
    """Return Patroni's settings that the page advises."""
    (text,) = (each.text for each in blocks(PAGE) if "loop_wait" in each.text)
    found: dict[str, Any] = yaml.safe_load(text)
    return found


@dataclass(frozen=True)
class Node:
    """A server of PostgreSQL with its Patroni."""

    name: str
    host: Host
    folder: Path
    owner: SystemUser
    password: str

    @property
    def url(self) -> str:
        """The superuser's URL of this server."""
        return f"postgresql://{SUPERUSER}:{self.password}@{self.host.address}:5432/postgres"

    def start(self) -> None:
        """Start Patroni, which starts PostgreSQL."""
        with self.log.open("ab") as log:
            command = ["/usr/bin/patroni", str(self.folder / "patroni.yml")]
            self.host.start(command, log, self.owner, {"HOME": str(self.folder)})

    @property
    def log(self) -> Path:
        """The log of Patroni and PostgreSQL."""
        return self.folder / "log"

    def drop_packets(self) -> None:
        """Cut it off: what it sends and what is sent to it vanishes."""
        self.host.pull_cable()

    def pass_packets(self) -> None:
        """Connect it again."""
        self.host.plug_cable()

    def freeze(self) -> None:
        """Stop all its processes; their connections stay open."""
        self.host.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let them go on."""
        self.host.signal(signal.SIGCONT)

    def kill_postgres(self) -> None:
        """End the postmaster; Patroni is not told."""
        pid = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGKILL)

    def lose(self) -> None:
        """End all its processes; their connections are closed. `start` brings it back."""
        self.host.kill()

    def make_read_only(self) -> None:
        """Have the server refuse writes, and Patroni think that it is well."""
        self._change("ALTER SYSTEM SET default_transaction_read_only = on")

    def make_writable(self) -> None:
        """Have it take writes again."""
        self._change("ALTER SYSTEM RESET default_transaction_read_only")

    def ask(self, path: str, body: Mapping[str, str] | None = None) -> tuple[int, str]:
        """Ask Patroni's REST API; return status and body. Raises OSError if it does not answer."""
        data = None if body is None else json.dumps(body).encode()
        try:
            request = Request(f"http://{self.host.address}:8008{path}", data)
            with urlopen(request, timeout=60) as answer:  # noqa: S310 - http, of the test's network
                return answer.status, answer.read().decode()
        except HTTPError as answer:
            return answer.code, answer.read().decode()

    def _change(self, statement: str) -> None:
        with psycopg.connect(self.url, autocommit=True, connect_timeout=5) as connection:
            connection.execute(statement.encode())
            connection.execute("SELECT pg_reload_conf()")


class PatroniCluster:
    """The nodes behind HAProxy. url: of whichever is the primary, as the superuser."""

    def __init__(self, folder: Path, network: Network, *, nodes: int, is_synchronous: bool) -> None:
        """Write all configurations. folder: an empty one, which every user may enter."""
        entry = pwd.getpwnam("postgres")
        owner = SystemUser(entry.pw_name, entry.pw_uid, entry.pw_gid)
        self.ttl_s = int(advised()["ttl"])
        self.is_synchronous = is_synchronous
        self._folder, self._owner, self._network = folder, owner, network
        self._etcd, self._proxy = network.host(), network.host()
        password = secrets.token_urlsafe(16)
        self.url = f"postgresql://{SUPERUSER}:{password}@{self._proxy.address}:5432/postgres"
        self.nodes = [
            Node(name, network.host(), self._make(name), owner, password)
            for name in (f"node{number + 1}" for number in range(nodes))
        ]
        for node in self.nodes:
            path = node.folder / "patroni.yml"
            # JSON is YAML.
            path.write_text(json.dumps(self._settings_of(node)))
            os.chown(path, owner.uid, owner.gid)
            path.chmod(0o600)

    def start(self) -> None:
        """Start everything; wait until every standby is one."""
        self._start_etcd()
        for node in self.nodes:
            node.start()
        self._start_proxy()
        self.wait_healthy()

    def wait_healthy(self) -> None:
        """Wait until the primary takes writes and all others are its standbys."""
        try:
            wait_until(self._is_healthy, timeout_s=START_S)
        except AssertionError:
            logs = "\n".join(f"{each.name}:\n{each.log.read_text()[-3000:]}" for each in self.nodes)
            raise AssertionError(f"The cluster does not become healthy.\n{logs}") from None

    def primary(self) -> Node:
        """Return the node that HAProxy passes connections to. Raises psycopg.OperationalError."""
        with psycopg.connect(self.url, connect_timeout=5) as connection:
            row = connection.execute("SELECT host(inet_server_addr())").fetchone()
        assert row is not None
        return next(each for each in self.nodes if each.host.address == row[0])

    def synchronous(self) -> Node | None:
        """Return the node that the primary's commits wait for, if any."""
        query = "SELECT application_name FROM pg_stat_replication WHERE sync_state = 'sync'"
        with psycopg.connect(self.url, connect_timeout=5) as connection:
            found = {name for (name,) in connection.execute(query)}
        return next((each for each in self.nodes if each.name in found), None)

    def switchover(self) -> None:
        """Have Patroni make another node the primary; return when it says that it did."""
        status, text = self.nodes[0].ask("/switchover", {"leader": self.primary().name})
        assert status == 200, text

    def _is_healthy(self) -> bool:
        query = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'"
        with suppress(OSError, psycopg.OperationalError):
            with psycopg.connect(self.url, connect_timeout=5) as connection:
                found = connection.execute(query).fetchone()
            if found != (len(self.nodes) - 1,):
                return False
            # Patroni assigns it after PostgreSQL: only then it can take over.
            standby = self.synchronous()
            return not self.is_synchronous or (
                standby is not None and standby.ask("/sync")[0] == 200
            )
        return False

    def _make(self, name: str) -> Path:
        folder = self._folder / name
        folder.mkdir(mode=0o700)
        os.chown(folder, self._owner.uid, self._owner.gid)
        return folder

    def _start_etcd(self) -> None:
        folder, address = self._make("etcd"), self._etcd.address
        client, peer = f"http://{address}:2379", f"http://{address}:2380"
        options = {
            "name": "etcd",
            "data-dir": str(folder / "data"),
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"etcd={peer}",
        }
        words = [f"--{name}={value}" for name, value in options.items()]
        with (folder / "log").open("wb") as log:
            self._etcd.start(["/usr/bin/etcd", *words], log, self._owner, {})

    def _start_proxy(self) -> None:
        """Start HAProxy with the page's section, for these nodes."""
        folder = self._make("haproxy")
        (text,) = (each.text for each in blocks(PAGE) if "GET /primary" in each.text)
        text = SERVERS.sub("", text).replace("127.0.0.1:5432", f"{self._proxy.address}:5432")
        servers = "".join(
            f"    server {node.name} {node.host.address}:5432\n" for node in self.nodes
        )
        file = folder / "haproxy.cfg"
        file.write_text(PROXY + text + servers)
        with (folder / "log").open("wb") as log:
            os.chown(file, self._owner.uid, self._owner.gid)
            self._proxy.start(["/usr/sbin/haproxy", "-db", "-f", str(file)], log, self._owner, {})

    def _settings_of(self, node: Node) -> dict[str, Any]:
        """Return the file of a node: the page's settings, and what is this node's or the test's."""
        shared = advised() | {"synchronous_mode": self.is_synchronous}
        if not self.is_synchronous:
            del shared["primary_start_timeout"]
        postgresql = shared["postgresql"]
        parameters = {**PARAMETERS, **postgresql.get("parameters", {})}
        address, network = node.host.address, self._network.network
        return {
            "scope": "zonal",
            "name": node.name,
            "restapi": {"listen": f"{address}:8008", "connect_address": f"{address}:8008"},
            "etcd3": {"host": f"{self._etcd.address}:2379"},
            "bootstrap": {
                "dcs": {**shared, "postgresql": {**postgresql, "parameters": parameters}},
                "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}, "data-checksums"],
            },
            "postgresql": {
                "listen": f"{address}:5432",
                "connect_address": f"{address}:5432",
                "bin_dir": BINARIES,
                "data_dir": str(node.folder / "data"),
                "pgpass": str(node.folder / "pgpass"),
                "authentication": {
                    "superuser": {"username": SUPERUSER, "password": node.password},
                    "replication": {"username": "standby", "password": node.password},
                },
                "parameters": {"unix_socket_directories": str(node.folder)},
                "pg_hba": [
                    "local all all scram-sha-256",
                    f"host replication standby {network} scram-sha-256",
                    f"host all all {network} scram-sha-256",
                ],
                "basebackup": [{"checkpoint": "fast"}],
            },
        }


@contextmanager
def patroni_cluster(*, nodes: int = 3, is_synchronous: bool = True) -> Iterator[PatroniCluster]:
    """Run a cluster inside the block."""
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    missing = [name for name in PROGRAMS if shutil.which(name, path=path) is None]
    assert not missing, f"install {missing}"
    # Not in pytest's folder, which only its user may enter.
    folder = Path(tempfile.mkdtemp(prefix="zonal-patroni-"))
    folder.chmod(0o711)
    with ExitStack() as stack:
        stack.callback(partial(shutil.rmtree, folder, ignore_errors=True))
        network = Network()
        stack.callback(network.remove)
        made = PatroniCluster(folder, network, nodes=nodes, is_synchronous=is_synchronous)
        made.start()
        yield made
