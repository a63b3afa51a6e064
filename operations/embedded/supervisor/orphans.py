"""End servers whose supervisor was killed, and remove stale lock files."""

import signal
import subprocess
from pathlib import Path
from typing import Final

from common.machine.errors import ClusterError
from common.machine.files import read_text
from operations.embedded.supervisor.known_processes import (
    PROC,
    ProcessIdentity,
    end,
    identify,
    processes_in,
)

# Fast (end sessions, write a checkpoint), then immediate (recover at the next start).
STOP_STEPS: Final = ((signal.SIGINT, 20.0), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0))
BACKEND_STEPS: Final = ((signal.SIGQUIT, 2.0), (signal.SIGKILL, 5.0))


def end_servers(data: Path) -> None:
    """End every server process of a data folder: the postmaster cleanly, then the rest.

    The caller must hold the cluster's lock, which proves that no supervisor runs them. Servers are
    identified by program and working folder, never by a number in a file.
    Raises ClusterError if one does not end.
    """
    servers = _servers_of(data)
    postmaster = _postmaster_of(data)
    if postmaster in servers:
        end([postmaster], STOP_STEPS)
    # Backends without a postmaster keep the shared memory and block the next start.
    survivors = end(servers, BACKEND_STEPS)
    if survivors:
        pids = ", ".join(str(process.pid) for process in survivors)
        sentence = f"An earlier PostgreSQL does not end (process {pids})."
        raise ClusterError(sentence)


def clear_stale_files(data: Path, socket_dir: Path, *, port: int) -> None:
    """Remove the lock files of servers that are gone; only after `end_servers`.

    The process id in such a file may belong to another process by now; PostgreSQL would then
    refuse to start.
    """
    for stale in (data / "postmaster.pid", socket_dir / f".s.PGSQL.{port}.lock"):
        stale.unlink(missing_ok=True)


def _servers_of(data: Path) -> list[ProcessIdentity]:
    if PROC.is_dir():
        return processes_in(data.resolve(), program="postgres")
    postmaster = _postmaster_of(data)
    if postmaster is None or str(data) not in _command_of(postmaster.pid):
        return []
    return [postmaster]


def _postmaster_of(data: Path) -> ProcessIdentity | None:
    first_line = read_text(data / "postmaster.pid").partition("\n")[0].strip()
    return identify(int(first_line)) if first_line.isdecimal() else None


def _command_of(pid: int) -> str:
    result = subprocess.run(  # noqa: S603 - a fixed program and a number
        ["/bin/ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return result.stdout
