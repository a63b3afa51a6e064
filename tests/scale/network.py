"""Machines on this machine: network namespaces on a bridge, whose cables can be pulled out.

Needs root and `ip` (Debian's iproute2).
"""

import itertools
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from common.machine.owners import SystemUser

PREFIX: Final = "zs"
NAME: Final = re.compile(rf"{PREFIX}(\d+)[bn]\d+")
END_S: Final = 10.0
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Host:
    """A machine. name: of its namespace and of its cable; started: the processes to wait for."""

    name: str
    address: str
    started: list["subprocess.Popen[bytes]"] = field(default_factory=list, compare=False)

    def start(
        self, command: list[str], log: IO[bytes], owner: SystemUser, env: Mapping[str, str]
    ) -> None:
        """Start a program as a system user."""
        words = ["nsenter", f"--net=/run/netns/{self.name}", "setpriv"]
        words += [f"--reuid={owner.uid}", f"--regid={owner.gid}", "--clear-groups", *command]
        process = subprocess.Popen(
            words,
            env={"PATH": os.defpath, "LC_ALL": "C.UTF-8", **env},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            # Ctrl-C is for the test, which ends it.
            process_group=0,
        )
        self.started.append(process)

    def pull_cable(self) -> None:
        """Drop every packet from and to it, without a word to anybody."""
        _ip("link", "set", self.name, "down")

    def plug_cable(self) -> None:
        """Let packets pass again."""
        _ip("link", "set", self.name, "up")

    def pids(self) -> list[int]:
        """Return the ids of all its processes."""
        return [int(pid) for pid in _ip("netns", "pids", self.name).split()]

    def signal(self, signum: signal.Signals) -> None:
        """Send a signal to all its processes."""
        for pid in self.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signum)

    def kill(self) -> None:
        """End all its processes as a power cut would."""
        deadline = time.monotonic() + END_S
        while self.pids():
            assert time.monotonic() < deadline, f"{self.name} does not end: {self.pids()}"
            self.signal(signal.SIGKILL)
            time.sleep(0.02)
        while self.started:
            self.started.pop().wait(END_S)


class Network:
    """A bridge with an address of this machine, and its hosts."""

    def __init__(self) -> None:
        """Create the bridge."""
        assert os.geteuid() == 0, "network namespaces need root"
        _remove_leftovers()
        self._prefix = _free_prefix()
        self._bridge = f"{PREFIX}{os.getpid()}b{next(_numbers)}"
        self.network = f"{self._prefix}.0/24"
        self.hosts: list[Host] = []
        _ip("link", "add", self._bridge, "type", "bridge")
        _ip("addr", "add", f"{self._prefix}.1/24", "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")

    def host(self) -> Host:
        """Create a host."""
        name = f"{PREFIX}{os.getpid()}n{next(_numbers)}"
        host = Host(name, f"{self._prefix}.{10 + len(self.hosts)}")
        self.hosts.append(host)
        _ip("netns", "add", name)
        _ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
        _ip("link", "set", name, "master", self._bridge, "up")
        for words in (
            ("addr", "add", f"{host.address}/24", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
            ("link", "set", "lo", "up"),
        ):
            _ip("-n", name, *words)
        return host

    def remove(self) -> None:
        """End all processes of the hosts, and remove everything."""
        for host in self.hosts:
            _remove(host)
        _ip("link", "del", self._bridge)


def _remove(host: Host) -> None:
    host.kill()
    _ip("netns", "del", host.name)


def _remove_leftovers() -> None:
    """Remove what runs left that were killed."""
    for line in _ip("netns", "list").splitlines():
        if _is_leftover(name := line.split()[0]):
            _remove(Host(name, ""))
    for line in _ip("-brief", "link", "show", "type", "bridge").splitlines():
        if _is_leftover(name := line.split()[0]):
            _ip("link", "del", name)


def _is_leftover(name: str) -> bool:
    found = NAME.fullmatch(name)
    return found is not None and not Path(f"/proc/{found[1]}").exists()


def _free_prefix() -> str:
    """Return the beginning of addresses of which this machine has none."""
    start = os.getpid() % 250
    for number in range(start, start + 250):
        prefix = f"10.213.{number % 250}"
        with socket.socket() as probe:
            try:
                probe.bind((f"{prefix}.1", 0))
            except OSError:
                return prefix
    raise RuntimeError("no network is free")


def _ip(*words: str) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout
