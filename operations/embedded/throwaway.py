"""`exec`: run a command with temporary clusters, for tests, `make check` and benchmarks."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Final

from common.machine.errors import AlreadyRunningError, StartError
from common.machine.files import Lock
from common.machine.folders import SYSTEM_ROOT, Folders, data_dir_from, make_runtime_dir
from common.machine.owners import is_root
from common.machine.ports import free_port
from common.machine.postgres_programs import find_binaries
from common.settings.runtime_env import first_secrets
from operations.embedded.postgres.cluster import CONTROL, TENANTS, LocalCluster, end_servers
from operations.embedded.supervisor import Launch

PREFIX: Final = "zonal-exec-"
FORWARDED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
LOCK_NAME: Final = "in-use"
CANNOT_RUN: Final = 127
BRAIN_PORTS: Final = ("ZBRAIN_PORT", "ZBRAIN_S3_PORT", "ZBRAIN_WORKER_PORT")
BRAIN_SETTINGS: Final = (*BRAIN_PORTS, "ZCACHE_BRAIN_URL", "ZCACHE_BRAIN_S3_URL")


def run_beside_clusters(
    command: Sequence[str], environ: Mapping[str, str], *, durable: bool = False
) -> int:
    """Run a command with fresh clusters and secrets in its environment; return its exit status.

    The clusters are started before the command and always removed when this returns; clusters of an
    earlier, killed run are removed too. For a command ended by a signal the status is 128 + its
    number, as in a shell. durable: see ``throwaway_environment``.
    """
    with throwaway_environment(environ, durable=durable) as environment:
        return _run_in_foreground(command, environment)


@contextlib.contextmanager
def throwaway_environment(
    environ: Mapping[str, str], *, durable: bool = False
) -> Iterator[dict[str, str]]:
    """Yield the environment for a command with temporary clusters, removed after the block.

    durable: commits wait for the disk and tables are vacuumed, as in production; for measurements.
    """
    with _throwaway_folders(environ) as folders:
        binaries = find_binaries(environ, folders.runtime_dir, production=False)
        clusters = [
            LocalCluster(
                replace(CONTROL, durable=durable, owner_creates_databases=True), folders, binaries
            ),
            LocalCluster(replace(TENANTS, durable=durable), folders, binaries),
        ]
        with _running(clusters):
            control, tenants = clusters
            ours = {
                **first_secrets(),
                "DATABASE_URL": control.url,
                "ZSQL_CLUSTER_URL": tenants.url,
                "ZDATA_DIR": str(folders.data_dir),
                **_brain_ports(environ),
            }
            # The client programs of the same PostgreSQL version, such as pg_dump.
            path = os.pathsep.join((str(binaries.bindir), environ.get("PATH", os.defpath)))
            files = {f"{name}_FILE" for name in ours}
            kept = {name: value for name, value in environ.items() if name not in files}
            yield {**kept, **ours, "PATH": path}


@contextlib.contextmanager
def throwaway_cluster(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the URL of another cluster for tenants' databases, which is removed after the block."""
    with _throwaway_folders(environ) as folders:
        binaries = find_binaries(environ, folders.runtime_dir, production=False)
        cluster = LocalCluster(replace(TENANTS, durable=False), folders, binaries)
        with _running([cluster]):
            yield cluster.url


def _brain_ports(environ: Mapping[str, str]) -> dict[str, str]:
    """Return ports for a brain started by the command, unless the caller set them.

    The default ports could belong to a platform that runs on this machine.
    """
    if any(environ.get(setting, "").strip() for setting in BRAIN_SETTINGS):
        return {}
    return {setting: str(free_port()) for setting in BRAIN_PORTS}


@contextlib.contextmanager
def _throwaway_folders(environ: Mapping[str, str]) -> Iterator[Folders]:
    """Create a data folder that is removed at the end; the binaries are the instance's."""
    runtime_dir = make_runtime_dir(data_dir_from(environ))
    base = SYSTEM_ROOT if is_root() else Path(tempfile.gettempdir())
    _remove_leftovers(base)
    folder, lock = _make_locked_folder(base)
    try:
        data_dir = folder / "var"
        data_dir.mkdir(mode=0o700)
        yield Folders(data_dir=data_dir, clusters_dir=folder, runtime_dir=runtime_dir)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()


def _make_locked_folder(base: Path) -> tuple[Path, Lock]:
    """Create a folder that gets its name only after its lock is held.

    A later run removes every folder it can lock as the leftover of a killed run.
    """
    unnamed = Path(tempfile.mkdtemp(prefix=".zonal-", dir=base))
    lock = Lock(unnamed / LOCK_NAME)
    lock.take(refusal=f"{unnamed} is in use by {{holder}}.")
    folder = base / f"{PREFIX}{unnamed.name.removeprefix('.zonal-')}"
    unnamed.rename(folder)
    return folder, lock


def _remove_leftovers(base: Path) -> None:
    for folder in base.glob(f"{PREFIX}*"):
        # Another run may be removing it at the same time.
        with contextlib.suppress(AlreadyRunningError, FileNotFoundError):
            if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
                continue
            lock = Lock(folder / LOCK_NAME)
            lock.take(refusal="{holder}")
            for data in folder.glob("*/data"):
                end_servers(data)
            shutil.rmtree(folder, ignore_errors=True)
            lock.release()


@contextlib.contextmanager
def _running(clusters: Sequence[LocalCluster]) -> Iterator[None]:
    """Run clusters inside the block. The calling thread forks their servers."""
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(len(clusters)) as pool:
        for cluster in clusters:
            stack.callback(cluster.remove)
            stack.callback(cluster.release)
        list(pool.map(LocalCluster.prepare, clusters))
        for cluster in clusters:
            log = cluster.home / "server.log"
            with log.open("wb") as output:
                cluster.start(output)
            stack.callback(cluster.stop)
        try:
            list(pool.map(_wait_and_configure, clusters))
        except StartError as error:
            logs = "\n".join((cluster.home / "server.log").read_text() for cluster in clusters)
            message = f"{error}\n{logs}"
            raise type(error)(message) from error
        yield


def _wait_and_configure(cluster: LocalCluster) -> None:
    cluster.wait_ready()
    cluster.configure_roles()


def _run_in_foreground(command: Sequence[str], environment: Mapping[str, str]) -> int:
    launch = Launch(command=tuple(command), env=environment)
    child: list[subprocess.Popen[bytes]] = []

    def forward(signum: int, _frame: FrameType | None) -> None:
        if child and not (signum == signal.SIGINT and _is_foreground()):
            child[0].send_signal(signum)

    previous = {signum: signal.signal(signum, forward) for signum in FORWARDED}
    try:
        # It may read from the terminal and gets its Ctrl-C.
        child.append(subprocess.Popen(launch.argv(), env=launch.env))  # noqa: S603 - the user's own command
        status = child[0].wait()
    finally:
        for signum, handler in previous.items():
            signal.signal(signum, handler)
    return status if status >= 0 else 128 - status


def _is_foreground() -> bool:
    """True if a Ctrl-C at the terminal reaches the command directly."""
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (OSError, ValueError):
        return False
