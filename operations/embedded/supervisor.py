"""Start processes, keep them running, and stop them in reverse order.

A child that does not stay up stops all of them, with one sentence and exit status 1. The kernel
ends the children when the supervisor is killed; the next start ends what has not ended by then.
"""

import asyncio
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import sys
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from common.machine import child
from common.machine.errors import StartError, SupervisorError
from common.machine.owners import SystemUser
from common.machine.terminal import log_line, printable, say, warn

Steps = tuple[tuple[signal.Signals, float], ...]
PROC: Final = Path("/proc")
# In the environment of every child: the data folder of its supervisor, without links.
MARK: Final = "ZONAL_SUPERVISED"
STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# A server finishes its open requests first; after the time limit it is killed.
DEFAULT_STOP: Final[Steps] = ((signal.SIGTERM, 15.0), (signal.SIGKILL, 5.0))
LEFTOVER_STOP: Final[Steps] = ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0))
POLL_S: Final = 0.02
PROBE_PAUSE_S: Final = 0.05
PROBE_TIMEOUT_S: Final = 5.0
# A detached grandchild may keep the pipe of a log open for ever.
LAST_OUTPUT_S: Final = 1.0
CHUNK_BYTES: Final = 65_536
# Longer lines are split, so that a child that writes no line breaks cannot fill the memory.
MAX_LINE_BYTES: Final = 16_384


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A command and the conditions it runs under.

    owner: the system user to run as, None for the present one.
    env: the complete environment, None to inherit the parent's.
    death_signal: what the kernel sends the child when this process dies (Linux only).
    sockets: listening ones of this process that the child serves, which outlive it.
    """

    command: tuple[str, ...]
    owner: SystemUser | None = None
    env: Mapping[str, str] | None = None
    cwd: Path | None = None
    umask: int | None = None
    address_space_bytes: int | None = None
    death_signal: signal.Signals = signal.SIGTERM
    sockets: tuple[socket.socket, ...] = ()

    @property
    def descriptors(self) -> list[int]:
        """Return the descriptors that the child inherits beside its streams."""
        return [each.fileno() for each in self.sockets]

    def argv(self) -> list[str]:
        """Return the command line with the wrapper `child.py`; only this process may start it.

        With `pass_fds=descriptors`.
        """
        options = {
            "parent": os.getpid(),
            "death_signal": int(self.death_signal),
            "uid": self.owner.uid if self.owner else None,
            "gid": self.owner.gid if self.owner else None,
            "umask": self.umask,
            "address_space_bytes": self.address_space_bytes,
            "sockets": self.descriptors,
        }
        return [sys.executable, "-I", "-S", child.__file__, json.dumps(options), *self.command]


@dataclass(frozen=True, kw_only=True)
class Process:
    """A child to keep running.

    needs: names of processes that must be ready before each start; while one of them is not,
    failures of this process do not count.
    probe: blocks; repeated until it returns True. Without one, a child is ready as soon as it runs.
    is_alive: blocks; the child is killed when this is False for the policy's `hangs_s`.
    before_start: a blocking preparation of every start; it may raise StartError.
    stop_steps: pairs of a signal and the seconds to wait after it. second_interrupt_signal: sent
    after a second Ctrl-C. ignored_lines: log lines that are not printed.
    """

    name: str
    launch: Launch
    needs: tuple[str, ...] = ()
    probe: Callable[[], bool] | None = None
    before_start: Callable[[], None] | None = None
    ready_timeout_s: float = 60.0
    is_alive: Callable[[], bool] | None = None
    stop_steps: Steps = DEFAULT_STOP
    second_interrupt_signal: signal.Signals = signal.SIGKILL
    ignored_lines: re.Pattern[str] | None = None


@dataclass(frozen=True, kw_only=True)
class RestartPolicy:
    """When the supervisor restarts a child, and when it gives up.

    A child that was ready for `healthy_s` resets its count of failures; after `failures`
    consecutive ends before that, everything stops. A child that was never ready is not restarted: a
    restart would not repair the cause of a failed first start. One that is not alive for `hangs_s`
    is killed; the supervisor asks every `watch_pause_s`.
    """

    first_delay_s: float = 0.5
    longest_delay_s: float = 10.0
    healthy_s: float = 30.0
    failures: int = 6
    hangs_s: float = 60.0
    watch_pause_s: float = 5.0

    def delay_s(self, failures: int) -> float:
        """Return the pause before the next attempt: doubled with each failure in a row."""
        return min(self.first_delay_s * 2.0 ** max(failures - 1, 0), self.longest_delay_s)


DEFAULT_RESTART_POLICY: Final = RestartPolicy()


class Supervisor:
    """The children of one command; construct and run it in the main thread.

    The main thread forks every child: Linux ends children with the *thread* that forked them.
    """

    def __init__(self, *, restart_policy: RestartPolicy = DEFAULT_RESTART_POLICY) -> None:
        self.restart_policy = restart_policy
        self.second_interrupt = asyncio.Event()
        self._children: list[_Child] = []
        self._halt = asyncio.Event()
        self._failure: StartError | None = None

    async def run(self, scenario: Callable[["Supervisor"], Awaitable[None]]) -> int:
        """Run the scenario, then keep its processes running until a signal; return the exit status.

        0 after SIGINT, SIGTERM or SIGHUP; 1 if a child does not stay up or the scenario raises a
        StartError. Every child has ended before this returns.
        """
        loop = asyncio.get_running_loop()
        for signum in STOP_SIGNALS:
            # Under nohup the end of the terminal is not the end of the platform.
            if signum != signal.SIGHUP or signal.getsignal(signum) != signal.SIG_IGN:
                loop.add_signal_handler(signum, self._on_signal)
        playing = asyncio.ensure_future(scenario(self))
        halting = asyncio.create_task(self._halt.wait())
        try:
            await asyncio.wait({playing, halting}, return_when="FIRST_COMPLETED")
            if playing.done():
                await playing
                await halting
        except StartError as error:
            self.fail(error)
        finally:
            for task in (playing, halting):
                task.cancel()
                await asyncio.wait({task})
            for each in reversed(self._children):
                await each.stop()
            say("Everything has stopped.")
        if self._failure is not None:
            warn(str(self._failure))
        return 1 if self._failure else 0

    async def start(self, processes: Iterable[Process]) -> None:
        """Start processes, each after those it needs, and wait until all are ready."""
        fresh = []
        for process in processes:
            needs = [each for each in self._children if each.process.name in process.needs]
            fresh.append(_Child(process, self, needs, colour=len(self._children)))
            self._children.append(fresh[-1])
        for each in fresh:
            await each.ready.wait()

    async def complete(self, name: str, launch: Launch) -> str:
        """Run a command to its end and return its standard output; its errors are logged.

        Raises SupervisorError if it fails.
        """
        pipe = asyncio.subprocess.PIPE
        process = await _spawn(launch, stdout=pipe, stderr=pipe)
        assert process.stdout is not None  # noqa: S101 - a pipe
        assert process.stderr is not None  # noqa: S101 - a pipe
        try:
            output, _ = await asyncio.gather(process.stdout.read(), _log(name, process.stderr))
            status = await process.wait()
        except asyncio.CancelledError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            raise
        if status != 0:
            sentence = f"{name} failed (exit status {status}); see its output above."
            raise SupervisorError(sentence)
        return output.decode(errors="replace")

    def pids(self) -> dict[str, int]:
        """Return the running children's ids by name."""
        return {each.process.name: each.running.pid for each in self._children if each.running}

    def fail(self, error: StartError) -> None:
        """Stop everything; the first error counts."""
        self._failure = self._failure or error
        self._halt.set()

    def _on_signal(self) -> None:
        if self._halt.is_set():
            self.second_interrupt.set()
            return
        say("\nStopping; press Ctrl-C again to stop immediately.")
        self._halt.set()


class _Child:
    """A process that is started, and started again whenever it ends, until `stop`."""

    def __init__(
        self, process: Process, supervisor: Supervisor, needs: Sequence["_Child"], *, colour: int
    ) -> None:
        self.process = process
        self.ready = asyncio.Event()
        self.running: asyncio.subprocess.Process | None = None
        self._supervisor = supervisor
        self._needs = needs
        self._colour = colour
        self._is_stopping = False
        # 0 if this run was not ready yet.
        self._ready_at = 0.0
        self._life = asyncio.create_task(self._live(), name=process.name)

    async def stop(self) -> None:
        """End the process by its stop steps; a second Ctrl-C ends it faster."""
        self._is_stopping = True
        hurry = asyncio.create_task(self._supervisor.second_interrupt.wait())
        for signum, wait_s in self.process.stop_steps:
            if self.running is None:
                break
            if not self._supervisor.second_interrupt.is_set():
                self._signal(signum)
                either = {self._life, hurry}
                await asyncio.wait(either, timeout=wait_s, return_when="FIRST_COMPLETED")
            if self._supervisor.second_interrupt.is_set() and not self._life.done():
                self._signal(self.process.second_interrupt_signal)
                await asyncio.wait({self._life}, timeout=wait_s)
            if self._life.done():
                break
        for task in (hurry, self._life):
            task.cancel()
            await asyncio.wait({task})

    async def _live(self) -> None:
        policy, failures, ever_ready = self._supervisor.restart_policy, 0, False
        while True:
            for need in self._needs:
                await need.ready.wait()
            reason = await self._run_once()
            if self._is_stopping:
                return
            ever_ready = ever_ready or self._ready_at > 0
            if self._ready_at > 0 and time.monotonic() - self._ready_at >= policy.healthy_s:
                failures = 0
            failures += all(need.ready.is_set() for need in self._needs)
            if not ever_ready or failures >= policy.failures:
                how = "does not stay up" if ever_ready else "did not come up"
                sentence = f"{self.process.name} {how} ({reason}); see its last log lines above."
                self._supervisor.fail(SupervisorError(sentence))
                return
            delay_s = policy.delay_s(failures)
            self._say(f"{reason}; starting it again in {delay_s:g} s")
            await asyncio.sleep(delay_s)

    async def _run_once(self) -> str:
        """Run the process from its preparation to its end; return why it ended."""
        self._ready_at = 0.0
        try:
            if self.process.before_start is not None:
                await asyncio.to_thread(self.process.before_start)
            async with _open_pipe() as (output, writing):
                try:
                    self.running = await _spawn(
                        self.process.launch, stdout=writing, stderr=asyncio.subprocess.STDOUT
                    )
                finally:
                    os.close(writing)
                status = await self._accompany(self.running, output)
        except (StartError, OSError) as error:
            return f"could not be started: {error}"
        return "ended with " + (f"exit status {status}" if status >= 0 else f"signal {-status}")

    async def _accompany(
        self, running: asyncio.subprocess.Process, output: asyncio.StreamReader
    ) -> int:
        """Log and watch a running process until its end; return its exit status."""
        logging = asyncio.create_task(
            _log(self.process.name, output, self.process.ignored_lines, colour=self._colour)
        )
        watching = asyncio.create_task(self._watch())
        try:
            status = await running.wait()
        finally:
            watching.cancel()
            self.ready.clear()
            self.running = None
            # Such as workers of a killed master, which would keep its port. The group's id cannot
            # be reused while one of them runs.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(running.pid, signal.SIGKILL)
        await asyncio.wait({logging}, timeout=LAST_OUTPUT_S)
        logging.cancel()
        return status

    async def _watch(self) -> None:
        """Set `ready` once the probe succeeds; kill a process that takes too long, or hangs."""
        probe, limit_s = self.process.probe, self.process.ready_timeout_s
        if probe is not None and not await _succeeds(probe, limit_s, PROBE_PAUSE_S):
            self._say(f"not ready after {limit_s:g} s")
            self._signal(signal.SIGKILL)
            return
        self._ready_at = time.monotonic()
        self.ready.set()
        alive, policy = self.process.is_alive, self._supervisor.restart_policy
        if alive is None:
            return
        is_alive = True
        while is_alive:
            await asyncio.sleep(policy.watch_pause_s)
            is_alive = await _succeeds(alive, policy.hangs_s, policy.watch_pause_s)
        self._say(f"has not answered for {policy.hangs_s:g} s")
        self._signal(signal.SIGKILL)

    def _signal(self, signum: signal.Signals) -> None:
        if self.running is not None:
            with contextlib.suppress(ProcessLookupError):
                self.running.send_signal(signum)

    def _say(self, text: str) -> None:
        log_line(self.process.name, text, colour=self._colour)


async def _succeeds(probe: Callable[[], bool], limit_s: float, pause_s: float) -> bool:
    """True once a probe succeeds, False if it has failed for this long.

    The time begins when it fails first: a paused machine pauses all processes.
    """
    failed_at = 0.0
    while not await asyncio.to_thread(probe):
        failed_at = failed_at or time.monotonic()
        if time.monotonic() - failed_at > limit_s:
            return False
        await asyncio.sleep(pause_s)
    return True


def http_probe(port: int, path: str, *, any_status: bool = False) -> Callable[[], bool]:
    """Return a probe that is ready when a GET on the loopback address answers 200.

    any_status: or with any other status.
    """

    def ask() -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PROBE_TIMEOUT_S)
        try:
            connection.request("GET", path)
            return connection.getresponse().status == http.HTTPStatus.OK or any_status
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    return ask


def marked_by(data_dir: Path) -> set[int]:
    """Return the running children of a supervisor of a data folder, and their children."""
    entry = f"{MARK}={data_dir.resolve()}".encode()
    found = set()
    for pid in _other_pids():
        with contextlib.suppress(OSError):
            if entry in (PROC / str(pid) / "environ").read_bytes().split(b"\0"):
                found.add(pid)
    return found


def processes_in(folder: Path, *, program: str) -> set[int]:
    """Return the running processes of a program with the given working folder.

    This identifies the servers of a data folder reliably: `postgres` always works inside its own.
    """
    found = set()
    for pid in _other_pids():
        with contextlib.suppress(OSError):
            name = (PROC / str(pid) / "exe").readlink().name
            # A program file that was deleted or replaced in the meantime reads "name (deleted)".
            if name.removesuffix(" (deleted)") == program:
                found |= {pid} if (PROC / str(pid) / "cwd").readlink() == folder else set()
    return found


def end(find: Callable[[], set[int]], steps: Steps) -> set[int]:
    """Signal the processes that are found, step by step, waiting after each; return the rest.

    They are searched again before each signal, since the system reuses ids.
    """
    remaining = find()
    for signum, wait_s in steps:
        for pid in remaining:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signum)
        deadline = time.monotonic() + wait_s
        while remaining and time.monotonic() < deadline:
            time.sleep(POLL_S)
            remaining = find()
    return remaining


def _other_pids() -> Iterator[int]:
    """Yield the ids of all other processes; none without /proc, where nothing can be found."""
    if PROC.is_dir():
        own = os.getpid()
        pids = (int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit())
        yield from (pid for pid in pids if pid != own)


async def _spawn(launch: Launch, **streams: Any) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *launch.argv(),
        env=launch.env,
        cwd=launch.cwd,
        stdin=asyncio.subprocess.DEVNULL,
        # Ctrl-C at the terminal is for the supervisor, which stops its children in order.
        process_group=0,
        pass_fds=launch.descriptors,
        **streams,
    )


@contextlib.asynccontextmanager
async def _open_pipe() -> AsyncIterator[tuple[asyncio.StreamReader, int]]:
    """Open a pipe: yield its reading end, and the descriptor of its writing end for a child.

    With asyncio's own pipes, a child counts as running while a grandchild holds one of them open,
    so the end of a killed master would not be noticed. The caller closes the descriptor.
    """
    reading, writing = os.pipe()
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reading, "rb", buffering=0)
    )
    try:
        yield reader, writing
    finally:
        transport.close()


async def _log(
    name: str,
    output: asyncio.StreamReader,
    ignored: re.Pattern[str] | None = None,
    *,
    colour: int = 0,
) -> None:
    """Print the lines of a pipe until it closes, without control characters."""
    rest = b""
    while chunk := await output.read(CHUNK_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > MAX_LINE_BYTES:
            lines, rest = [*lines, rest], b""
        for line in lines:
            _print_line(name, line, ignored, colour)
    if rest:
        _print_line(name, rest, ignored, colour)


def _print_line(name: str, line: bytes, ignored: re.Pattern[str] | None, colour: int) -> None:
    text = printable(line.decode(errors="replace"))
    if ignored is None or not ignored.search(text):
        log_line(name, text, colour=colour)
