"""A new brain takes over from the running one without a refused connection.

SIGUSR2 makes a brain start another one, with the code that is installed now, and pass its listening
sockets to it. Both serve for a while, like any two brains over one database; then the new one ends
the old one. If the new one does not start, the old one continues.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from common.machine import systemd

log = structlog.get_logger(__name__)

# For the new brain alone: its sockets as name=descriptor, and the process to end.
SOCKETS: Final = "ZONAL_BRAIN_SOCKETS"
FORMER: Final = "ZONAL_BRAIN_FORMER"


def inherited() -> dict[str, socket.socket]:
    """Return the listening sockets of the former brain by name; {} for a first one."""
    given = [pair.partition("=") for pair in os.environ.pop(SOCKETS, "").split(",") if pair]
    found = {name: socket.socket(fileno=int(descriptor)) for name, _, descriptor in given}
    for sock in found.values():
        sock.set_inheritable(False)
    return found


def has_former() -> bool:
    """True until this brain has ended the one that has started it; both have the same sockets."""
    return FORMER in os.environ


def report_ready() -> None:
    """Report that this brain serves, and end the one that has started it."""
    systemd.notify("READY=1", f"MAINPID={os.getpid()}")
    former = int(os.environ.pop(FORMER, "0"))
    if former and former == os.getppid():
        os.kill(former, signal.SIGTERM)


class Successor:
    """The brain that this one has started, if any."""

    def __init__(self) -> None:
        self._folder = _working_folder()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def is_process(self, pid: int) -> bool:
        return self._process is not None and self._process.pid == pid

    def end(self) -> None:
        if self._process is not None:
            self._process.terminate()

    def wait_for_end(self, until: float) -> None:
        """Wait for the end of a terminated process; kill it at this time.monotonic()."""
        if self._process is None:
            return
        try:
            self._process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()

    def note_end(self) -> None:
        """Log the end of the successor, after which this brain continues."""
        if self._process is not None and self._process.poll() is not None:
            log.error("brain_successor_ended", status=self._process.returncode)
            self._process = None

    def start(self, sockets: Mapping[str, socket.socket]) -> None:
        """Start it with these sockets, unless there is one; if it cannot be, that is logged."""
        if self.is_running:
            return
        numbers = {name: sock.fileno() for name, sock in sockets.items()}
        handed_over = ",".join(f"{name}={number}" for name, number in numbers.items())
        unblock_signals = partial(signal.pthread_sigmask, signal.SIG_SETMASK, ())
        # Not asyncio's: that kills a process which outlives the loop.
        try:
            self._process = subprocess.Popen(  # noqa: S603 - this program, started as it was
                (sys.executable, *sys.orig_argv[1:]),
                cwd=self._folder,
                pass_fds=tuple(numbers.values()),
                env=os.environ | {SOCKETS: handed_over, FORMER: str(os.getpid())},
                # Or it could not be ended until it runs.
                preexec_fn=unblock_signals,  # noqa: PLW1509 - there is no other thread here
            )
        except OSError as error:
            log.exception("brain_successor_not_started", reason=error.strerror)
            return
        log.info("brain_successor_started", pid=self._process.pid)


def _working_folder() -> str:
    """Return the working folder by the path in PWD, if it is that folder, as gunicorn does.

    The path may be a link to a release's folder, which an upgrade moves; getcwd(3) has followed it.
    """
    given = os.environ.get("PWD", "")
    is_here = given and Path(given).is_dir() and Path(given).samefile(".")
    return given if is_here else str(Path.cwd())
