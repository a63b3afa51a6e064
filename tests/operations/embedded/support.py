"""Support for the tests of this folder."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from common.machine.folders import make_folders
from common.machine.ports import PortReservations
from edgecache import local_nodes
from edgecache.local_nodes import LocalNode
from operations.embedded.postgres.cluster import ClusterSpec, LocalCluster
from tests.waiting import wait_until

PROJECT = Path(__file__).resolve().parents[3]
FAKE_PLATFORM = Path(__file__).with_name("fake_platform.py")


def environment(**changes: str) -> dict[str, str]:
    """Return the environment without the variables of an outer `exec`, for a child of a test."""
    named = ("DATABASE_URL", "ZSQL_CLUSTER_URL", "ZDATA_DIR", "PORT", "ZPG_BINDIR")
    ports = ("ZBRAIN_PORT", "ZBRAIN_S3_PORT", "ZBRAIN_WORKER_PORT")
    secret = ("SECRET_KEY", "ZSECRET_KEYS", "ZJWT_SECRET", "ZAUTH_DEV_ORG_ID")
    kept = {
        name: value for name, value in os.environ.items() if name not in (*named, *ports, *secret)
    }
    return {**kept, "PYTHONPATH": str(PROJECT), **changes}


def prepare(folder: Path, regions: Sequence[str]) -> list[LocalNode]:
    """Return the nodes of a platform that is not running."""
    with PortReservations() as reservations:
        return local_nodes.prepare(folder, regions, reservations)


MakeCluster = Callable[[ClusterSpec], LocalCluster]


def start(cluster: LocalCluster) -> None:
    """Start a cluster, with its log beside its data."""
    cluster.prepare()
    with (cluster.home / "server.log").open("ab") as output:
        cluster.start(output)
    cluster.wait_ready()
    cluster.configure_roles()


def postmaster_pid(cluster: LocalCluster) -> int:
    """Read the server's process id."""
    return int((cluster.data / "postmaster.pid").read_text().splitlines()[0])


class Platform:
    """`up` with a fake web server and a fake worker."""

    def __init__(self, data_dir: Path, *, port: int) -> None:
        self.data_dir = data_dir
        self.port = port
        self.log = data_dir.parent / f"up-{port}.log"
        self.process: subprocess.Popen[bytes] | None = None

    def begin(self, **changes: str) -> subprocess.Popen[bytes]:
        """Start it, without waiting for the banner."""
        env = environment(ZDATA_DIR=str(self.data_dir), PORT=str(self.port), **changes)
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, str(FAKE_PLATFORM)],
                env=env,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
        return self.process

    def start(self, **changes: str) -> None:
        """Start it and wait for the end of the banner."""
        for of_last_start in self.data_dir.glob("*.pid"):
            of_last_start.unlink()
        process = self.begin(**changes)
        wait_until(lambda: "Ctrl-C stops everything" in self.said() or process.poll() is not None)
        assert process.poll() is None, self.said()

    def end(self) -> int:
        """Stop it, wait, and return the exit status."""
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(30)

    def said(self) -> str:
        """Return its output."""
        return self.log.read_text()

    def pid_of(self, name: str) -> int:
        """Read the id of the running child of that name."""
        if name in ("control", "tenants"):
            path = make_folders(self.data_dir).cluster_home(name) / "data" / "postmaster.pid"
        else:
            path = self.data_dir / f"{name}.pid"
        return int((path.read_text().splitlines() or ["0"])[0]) if path.exists() else 0

    def pids(self) -> list[int]:
        """Read the ids of all children."""
        return [self.pid_of(name) for name in ("control", "tenants", "web", "worker")]
