"""Descriptions of supervised children: the process, a server of a recipe, readiness, restarts."""

import asyncio
import contextlib
import re
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from operations.embedded.supervisor.launch import Launch

Probe = Callable[[], Awaitable[bool]]
Steps = tuple[tuple[signal.Signals, float], ...]
PROBE_TIMEOUT_S: Final = 5.0
OK_LINE: Final = b" 200 "
# A server finishes its open requests first; after the time limit it is killed.
DEFAULT_STOP: Final[Steps] = ((signal.SIGTERM, 15.0), (signal.SIGKILL, 5.0))


@dataclass(frozen=True, kw_only=True)
class Process:
    """A child to keep running.

    needs: names of processes that must be ready before each start; while one of them is not,
    failures of this process do not count.
    probe: repeated until it returns True; without one, a child is ready as soon as it runs.
    before_start: a blocking preparation of every start; it may raise StartError.
    stop_steps: pairs of a signal and the seconds to wait after it. second_interrupt_signal: sent
    after a second Ctrl-C. is_tracked: if this supervisor is killed, the next start ends the child;
    False for processes that clean up by themselves. ignored_lines: log lines that are not printed.
    """

    name: str
    launch: Launch
    needs: tuple[str, ...] = ()
    probe: Probe | None = None
    before_start: Callable[[], None] | None = None
    ready_timeout_s: float = 60.0
    stop_steps: Steps = DEFAULT_STOP
    second_interrupt_signal: signal.Signals = signal.SIGKILL
    is_tracked: bool = True
    ignored_lines: re.Pattern[str] | None = None


@dataclass(frozen=True, kw_only=True)
class ServerProcess:
    """A server process, started after the databases and stopped before them.

    ready_path: a path on `port` that answers 200 once the server is ready. port_setting: the
    setting of the port, which is checked before anything starts; "" for a port found free.
    joins: started together with the server before it, for small servers.
    """

    name: str
    command: tuple[str, ...]
    port: int | None = None
    port_setting: str = ""
    ready_path: str = ""
    needs: tuple[str, ...] = ()
    stop_timeout_s: float = 15.0
    joins: bool = False


@dataclass(frozen=True, kw_only=True)
class RestartPolicy:
    """When the supervisor restarts a child, and when it gives up.

    A child that was ready for `healthy_s` resets its count of failures; after `failures`
    consecutive ends before that, everything stops. A child that was never ready is not restarted: a
    restart would not repair the cause of a failed first start.
    """

    first_delay_s: float = 0.5
    longest_delay_s: float = 10.0
    healthy_s: float = 30.0
    failures: int = 6

    def delay_s(self, failures: int) -> float:
        """Return the pause before the next attempt: doubled with each failure in a row."""
        return min(self.first_delay_s * 2.0 ** max(failures - 1, 0), self.longest_delay_s)


def call_probe(question: Callable[[], bool]) -> Probe:
    """Return a probe that calls a blocking function in a thread."""

    async def ask() -> bool:
        return await asyncio.to_thread(question)

    return ask


def http_probe(port: int, path: str) -> Probe:
    """Return a probe that is ready when a GET on the loopback address answers 200."""

    async def ask() -> bool:
        try:
            async with asyncio.timeout(PROBE_TIMEOUT_S):
                return OK_LINE in await _status_line(port, path)
        except (OSError, TimeoutError):
            return False

    return ask


async def _status_line(port: int, path: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
        writer.write(request.encode())
        await writer.drain()
        return await reader.readline()
    finally:
        writer.close()
        # Only the status line matters.
        with contextlib.suppress(OSError):
            await writer.wait_closed()
