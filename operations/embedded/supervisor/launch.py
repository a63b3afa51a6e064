"""How a child is started: its user, its limits, and its signal when the parent dies."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from common.machine import child
from common.machine.owners import SystemUser

PRIVATE_UMASK: Final = 0o077


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A command and the conditions it runs under.

    owner: the system user to run as, None for the present one.
    env: the complete environment, None to inherit the parent's.
    death_signal: what the kernel sends the child when this process dies (Linux only).
    """

    command: tuple[str, ...]
    owner: SystemUser | None = None
    env: Mapping[str, str] | None = None
    cwd: Path | None = None
    umask: int | None = None
    address_space_bytes: int | None = None
    death_signal: signal.Signals = signal.SIGTERM

    def argv(self) -> list[str]:
        """Return the command line with the wrapper `child.py`; only this process may start it."""
        options = {
            "parent": os.getpid(),
            "death_signal": int(self.death_signal),
            "uid": self.owner.uid if self.owner else None,
            "gid": self.owner.gid if self.owner else None,
            "umask": self.umask,
            "address_space_bytes": self.address_space_bytes,
        }
        return [sys.executable, "-I", "-S", child.__file__, json.dumps(options), *self.command]


def run(launch: Launch, *, timeout_s: float) -> subprocess.CompletedProcess[str]:
    """Run a short command to its end; `stdout` has both outputs, in order."""
    return subprocess.run(  # noqa: S603 - commands are built by this package, never by a request
        launch.argv(),
        env=launch.env,
        cwd=launch.cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=timeout_s,
        check=False,
    )


def spawn(launch: Launch, *, output: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start a long-lived command in its own process group, which Ctrl-C does not reach."""
    return subprocess.Popen(  # noqa: S603 - commands are built by this package, never by a request
        launch.argv(),
        env=launch.env,
        cwd=launch.cwd,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        process_group=0,
    )


def spawn_in_foreground(launch: Launch) -> subprocess.Popen[bytes]:
    """Start a command in the foreground: it may read from the terminal and gets its Ctrl-C."""
    return subprocess.Popen(  # noqa: S603 - the command the user typed
        launch.argv(), env=launch.env, cwd=launch.cwd
    )
