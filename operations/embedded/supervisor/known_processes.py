"""Known processes: identified by id and start time, recorded on disk, and ended after a crash.

The system reuses ids, so an id alone identifies nothing. The next start finds the children and the
database servers of a supervisor that was killed.
"""

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from common.machine.errors import ClusterError
from common.machine.files import read_text, write_private

PROC: Final = Path("/proc")
POLL_S: Final = 0.02
# Fast (end sessions, write a checkpoint), then immediate (recover at the next start).
SERVER_STOP_STEPS: Final = ((signal.SIGINT, 20.0), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0))
BACKEND_STOP_STEPS: Final = ((signal.SIGQUIT, 2.0), (signal.SIGKILL, 5.0))
ROSTER_FILE: Final = "supervisor.json"
MARK_VARIABLE: Final = "ZSUPERVISOR"
CHILD_STOP_STEPS: Final = ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0))


@dataclass(frozen=True)
class ProcessIdentity:
    """A process id with its start time, which together identify one process of this boot."""

    pid: int
    began: str

    def is_alive(self) -> bool:
        """True if the process still runs; a zombie does not."""
        return began_at(self.pid) == self.began

    def send(self, signum: signal.Signals) -> None:
        """Signal the process, if it still runs."""
        if self.is_alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signum)


def identify(pid: int) -> ProcessIdentity | None:
    """Return the identity of a running process, None if there is none."""
    began = began_at(pid)
    return ProcessIdentity(pid, began) if began else None


def began_at(pid: int) -> str:
    """Return a text that differs between two processes of the same id; '' if none runs.

    Linux: the boot's id and the start in clock ticks. Source: proc(5), stat, field 22.
    """
    if sys.platform != "linux":
        return _began_by_ps(pid)
    try:
        # The command's name may hold blanks and brackets: the fields start after the last one.
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else f"{_boot()}-{fields[19]}"


def processes_in(folder: Path, *, program: str) -> list[ProcessIdentity]:
    """Return the running processes of a program with the given working folder.

    This identifies the servers of a data folder reliably: `postgres` always works inside its own.
    Returns [] if /proc is missing.
    """
    found = []
    for pid in _all_pids():
        try:
            executable = (PROC / str(pid) / "exe").readlink()
            inside = (PROC / str(pid) / "cwd").readlink()
        except OSError:
            continue
        # A program file that was deleted or replaced in the meantime reads "name (deleted)".
        name = executable.name.removesuffix(" (deleted)")
        identity = identify(pid) if name == program and inside == folder else None
        if identity is not None:
            found.append(identity)
    return found


def processes_marked(mark: str) -> list[ProcessIdentity]:
    """Return the running processes with an environment entry such as `NAME=value`."""
    entry = mark.encode()
    found = []
    for pid in _all_pids():
        try:
            entries = (PROC / str(pid) / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        identity = identify(pid) if entry in entries else None
        if identity is not None:
            found.append(identity)
    return found


def end(
    processes: Iterable[ProcessIdentity], steps: Iterable[tuple[signal.Signals, float]]
) -> list[ProcessIdentity]:
    """Signal processes step by step, waiting after each signal; return the survivors.

    steps: a signal and the seconds to wait after it.
    """
    remaining = [process for process in processes if process.is_alive()]
    for signum, wait_s in steps:
        if not remaining:
            break
        for process in remaining:
            process.send(signum)
        deadline = time.monotonic() + wait_s
        while remaining and time.monotonic() < deadline:
            time.sleep(POLL_S)
            remaining = [process for process in remaining if process.is_alive()]
    return remaining


class Roster:
    """The children of one supervisor, by process id and start time.

    Children also inherit a random mark in their environment, so that grandchildren are found
    when the child between is gone.
    """

    def __init__(self, data_dir: Path) -> None:
        """data_dir: the folder whose lock the supervisor holds."""
        self._path = data_dir / ROSTER_FILE
        self._mark = secrets.token_hex(16)
        self._children: dict[str, ProcessIdentity] = {}

    @property
    def environment(self) -> dict[str, str]:
        """Variables that every recorded child's environment must contain."""
        return {MARK_VARIABLE: self._mark}

    def end_leftovers(self) -> int:
        """End the children of an earlier supervisor; return their number.

        Another process that reuses one of the ids has another start time and no mark.
        """
        mark, children = self._read()
        leftovers = {child for child in children if child.is_alive()}
        leftovers |= set(processes_marked(f"{MARK_VARIABLE}={mark}")) if mark else set()
        end(leftovers, CHILD_STOP_STEPS)
        self._path.unlink(missing_ok=True)
        return len(leftovers)

    def add(self, name: str, pid: int) -> None:
        """Record a child that has just started and is not reaped yet."""
        identity = identify(pid)
        if identity is not None:
            self._children[name] = identity
            self._write()

    def remove(self, name: str) -> None:
        """Remove a child that ended."""
        if self._children.pop(name, None) is not None:
            self._write()

    def _write(self) -> None:
        children = [[child.pid, child.began] for child in self._children.values()]
        write_private(self._path, json.dumps({"mark": self._mark, "children": children}))

    def _read(self) -> tuple[str, list[ProcessIdentity]]:
        try:
            content = json.loads(read_text(self._path) or "{}")
            children = [ProcessIdentity(int(pid), str(began)) for pid, began in content["children"]]
            return str(content["mark"]), children
        except (ValueError, KeyError, TypeError):
            return "", []


def end_servers(data: Path) -> None:
    """End every server process of a data folder: the postmaster cleanly, then the rest.

    The caller must hold the cluster's lock, which proves that no supervisor runs them. Servers are
    identified by program and working folder, never by a number in a file.
    Raises ClusterError if one does not end.
    """
    servers = _servers_of(data)
    postmaster = _postmaster_of(data)
    if postmaster in servers:
        end([postmaster], SERVER_STOP_STEPS)
    # Backends without a postmaster keep the shared memory and block the next start.
    survivors = end(servers, BACKEND_STOP_STEPS)
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


def _all_pids() -> Iterator[int]:
    if PROC.is_dir():
        own = os.getpid()
        pids = (int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit())
        yield from (pid for pid in pids if pid != own)


def _boot() -> str:
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _began_by_ps(pid: int) -> str:
    result = subprocess.run(  # noqa: S603 - a fixed program and a number
        ["/bin/ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return result.stdout.strip()
