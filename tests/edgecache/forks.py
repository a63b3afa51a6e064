"""Brains and workers, forked from a process that has imported their code.

To import it takes seconds of a processor, to fork some milliseconds. A fork runs a module as
``python -m`` does, with an environment, streams and listening sockets of its own.

``python -m tests.edgecache.forks DESCRIPTOR`` takes requests from a socket until its other end is
closed; the kernel kills what still runs then.
"""

import atexit
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from django.conf import settings

from common.machine.child import die_with, hand_over

IMPORTED: Final = (
    "edgecache.brain.command",
    "edgecache.worker.process",
    "common.settings.unknown_names",
    "tests.edgecache.brain.brains",
)
MESSAGE_BYTES: Final = 2**17
MAX_FILES: Final = 16
STOP_S: Final = 10.0


class Fork:
    """A forked process, with what tests use of ``subprocess.Popen``."""

    def __init__(self, server: "ForkServer", pid: int) -> None:
        """pid: of a process that the server waits for only when it is asked to."""
        self.pid = pid
        self.returncode: int | None = None
        self._server = server
        self._handle = os.pidfd_open(pid)

    def poll(self) -> int | None:
        """Return its exit code, None while it runs."""
        return self._code(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; return its exit code, less than 0 for a signal.

        Raises subprocess.TimeoutExpired.
        """
        code = self._code(timeout)
        if code is None:
            raise subprocess.TimeoutExpired([str(self.pid)], timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it as a power cut would."""
        self.send_signal(signal.SIGKILL)

    def _code(self, timeout_s: float | None) -> int | None:
        if self.returncode is not None:
            return self.returncode
        end = select.poll()
        end.register(self._handle, select.POLLIN)
        if end.poll(None if timeout_s is None else timeout_s * 1000):
            self.returncode = self._server.ask({"ended": self.pid})
            os.close(self._handle)
        return self.returncode


class ForkServer:
    """The process that others are forked from."""

    def __init__(self) -> None:
        """Start it; it takes requests when it has imported everything."""
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        atexit.register(self.stop)

    def stop(self) -> None:
        """End it, and what was forked from it."""
        self._channel.close()
        self._process.wait(STOP_S)

    def fork(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        streams: Mapping[int, int],
        *,
        sockets: Sequence[socket.socket] = (),
    ) -> Fork:
        """Run a module. command: its name and arguments.

        streams: from the numbers of its standard streams to descriptors of this process. sockets:
        on which it listens.
        """
        request = {
            "command": list(command),
            "environment": dict(environment),
            "streams": list(streams),
        }
        files = [*streams.values(), *(each.fileno() for each in sockets)]
        return Fork(self, self.ask(request, files))

    def ask(self, request: Mapping[str, Any], files: Sequence[int] = ()) -> int:
        """Send a request; return the number that answers it."""
        with self._lock:
            socket.send_fds(self._channel, [json.dumps(request).encode()], files)
            return int(self._channel.recv(MESSAGE_BYTES))


Process = subprocess.Popen[bytes] | Fork


@cache
def fork_server() -> ForkServer:
    """Return the server of this process, which runs until this process ends."""
    return ForkServer()


def serve(channel: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Fork for each request until the other end is closed; return the request in a fork."""
    while True:
        message, files, _, _ = socket.recv_fds(channel, MESSAGE_BYTES, MAX_FILES)
        if not message:
            return None
        request = json.loads(message)
        if "ended" in request:
            answer = os.waitstatus_to_exitcode(os.waitpid(request["ended"], 0)[1])
        else:
            answer = os.fork()
            if not answer:
                return request, files
        for each in files:
            os.close(each)
        channel.send(str(answer).encode())


def become(request: dict[str, Any], files: list[int]) -> None:
    """Run a module as the main one, with streams and sockets of its own."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(request["environment"])
    for number, file in zip(request["streams"], files, strict=False):
        os.dup2(file, number)
        os.close(file)
    if sockets := files[len(request["streams"]) :]:
        hand_over(sockets)
    sys.argv = request["command"]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


def main(descriptor: int) -> None:
    """Import everything, serve, and run what was asked for in each fork."""
    # Ctrl-C in a terminal is for the tests, which end this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in IMPORTED:
        importlib.import_module(name)
    assert not settings.configured, "each fork has an environment of its own"
    gc.collect()
    gc.freeze()
    server = os.getpid()
    with socket.socket(fileno=descriptor) as channel:
        forked = serve(channel)
    if forked is not None:
        die_with(server, signal.SIGKILL)
        become(*forked)


if __name__ == "__main__":
    main(int(sys.argv[1]))
