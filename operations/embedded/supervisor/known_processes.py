"""Identify processes by id and start time, since the system reuses ids."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
POLL_S: Final = 0.02


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
