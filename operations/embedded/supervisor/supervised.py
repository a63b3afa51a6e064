"""One supervised child: start, wait until ready, log its output, restart after a delay, stop."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from common.machine.errors import StartError, SupervisorError
from common.machine.terminal import log_line, printable
from operations.embedded.supervisor.known_processes import Roster
from operations.embedded.supervisor.process import Process, RestartPolicy

CHUNK_BYTES: Final = 65_536
# Longer lines are split, so that a child that writes no line breaks cannot fill the memory.
MAX_LINE_BYTES: Final = 16_384
PROBE_PAUSE_S: Final = 0.05
LAST_OUTPUT_S: Final = 1.0


class SupervisedProcess:
    """A process that is restarted until `stop`."""

    def __init__(
        self,
        process: Process,
        *,
        colour: int,
        roster: Roster,
        restart_policy: RestartPolicy,
        needs: Sequence["SupervisedProcess"],
        give_up: Callable[[StartError], None],
        second_interrupt: asyncio.Event,
    ) -> None:
        """give_up: called if the child does not stay up. second_interrupt: a second Ctrl-C."""
        self.process = process
        self.ready = asyncio.Event()
        self._colour = colour
        self._roster = roster
        self._restart_policy = restart_policy
        self._needs = needs
        self._give_up = give_up
        self._second_interrupt = second_interrupt
        self._child: asyncio.subprocess.Process | None = None
        self._stopping = False
        self._was_ready_at = 0.0
        self._life: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """The running child's id, None between two runs."""
        return self._child.pid if self._child else None

    def begin(self) -> None:
        """Start the child, and restart it whenever it ends."""
        self._life = asyncio.create_task(self._live(), name=self.process.name)

    async def stop(self) -> None:
        """End the child by its stop steps and do not restart it."""
        self._stopping = True
        if self._life is None:
            return
        if self._child is None:
            self._life.cancel()
        for signum, wait_s in self.process.stop_steps:
            if await self._ends_after(signum, wait_s):
                break
        self._life.cancel()
        await asyncio.wait({self._life})

    async def _live(self) -> None:
        failures = 0
        ever_ready = False
        while True:
            for need in self._needs:
                await need.ready.wait()
            reason = await self._attempt()
            if self._stopping:
                return
            ever_ready = ever_ready or self._was_ready_at > 0
            failures = self._count(failures)
            if not ever_ready or failures >= self._restart_policy.failures:
                self._give_up(
                    SupervisorError(self._reason_to_give_up(reason, ever_ready=ever_ready))
                )
                return
            delay_s = self._restart_policy.delay_s(failures)
            self._say(f"{reason}; starting it again in {delay_s:g} s")
            await asyncio.sleep(delay_s)

    def _count(self, failures: int) -> int:
        """Return the consecutive failures, including this one unless a needed process is down."""
        was_healthy = (
            self._was_ready_at > 0
            and time.monotonic() - self._was_ready_at >= self._restart_policy.healthy_s
        )
        if was_healthy:
            failures = 0
        needs_are_up = all(need.ready.is_set() for need in self._needs)
        return failures + 1 if needs_are_up else failures

    async def _attempt(self) -> str:
        """Run the child once, from its preparation to its end; return why it ended."""
        self._was_ready_at = 0.0
        try:
            if self.process.before_start is not None:
                await asyncio.to_thread(self.process.before_start)
            async with open_pipe() as (output, writing):
                try:
                    child = await self._spawn(writing)
                finally:
                    os.close(writing)
                return f"ended with {_describe(await self._accompany(child, output))}"
        except (StartError, OSError) as error:
            return f"could not be started: {error}"

    async def _accompany(
        self, child: asyncio.subprocess.Process, output: asyncio.StreamReader
    ) -> int:
        """Record, log and watch a running child until its end; return its exit status."""
        self._child = child
        if self.process.is_tracked:
            self._roster.add(self.process.name, child.pid)
        logging = asyncio.create_task(self._log(output))
        watching = asyncio.create_task(self._watch())
        try:
            status = await child.wait()
        finally:
            watching.cancel()
            self.ready.clear()
            self._child = None
            self._end_group(child.pid)
            self._roster.remove(self.process.name)
        # A detached grandchild may hold the pipe open for ever.
        await asyncio.wait({logging}, timeout=LAST_OUTPUT_S)
        logging.cancel()
        return status

    async def _spawn(self, output: int) -> asyncio.subprocess.Process:
        launch = self.process.launch
        if self.process.is_tracked:
            inherited: Mapping[str, str] = os.environ if launch.env is None else launch.env
            launch = replace(launch, env={**inherited, **self._roster.environment})
        return await asyncio.create_subprocess_exec(
            *launch.argv(),
            env=launch.env,
            cwd=launch.cwd,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
            # Ctrl-C at the terminal is for the supervisor, which stops its children in order.
            process_group=0,
        )

    async def _watch(self) -> None:
        """Set `ready` once the probe succeeds; kill a child that takes too long."""
        deadline = time.monotonic() + self.process.ready_timeout_s
        while self.process.probe is not None and not await self.process.probe():
            if time.monotonic() > deadline:
                self._say(f"not ready after {self.process.ready_timeout_s:g} s")
                self._signal(signal.SIGKILL)
                return
            await asyncio.sleep(PROBE_PAUSE_S)
        self._was_ready_at = time.monotonic()
        self.ready.set()

    async def _log(self, output: asyncio.StreamReader) -> None:
        ignored = self.process.ignored_lines
        async for line in lines_of(output):
            if ignored is None or not ignored.search(line):
                self._say(line)

    async def _ends_after(self, signum: signal.Signals, wait_s: float) -> bool:
        """Signal the child and wait; after a second Ctrl-C, send its `second_interrupt_signal`."""
        if self._child is None or self._life is None:
            return True
        interrupted = asyncio.create_task(self._second_interrupt.wait())
        try:
            if not self._second_interrupt.is_set():
                self._signal(signum)
                await asyncio.wait(
                    {self._life, interrupted}, timeout=wait_s, return_when="FIRST_COMPLETED"
                )
            if self._second_interrupt.is_set() and not self._life.done():
                self._signal(self.process.second_interrupt_signal)
                await asyncio.wait({self._life}, timeout=wait_s)
        finally:
            interrupted.cancel()
        return self._life.done()

    def _signal(self, signum: signal.Signals) -> None:
        if self._child is not None:
            with contextlib.suppress(ProcessLookupError):
                self._child.send_signal(signum)

    def _end_group(self, pid: int) -> None:
        """Kill the rest of the child's process group, such as workers of a killed master.

        They would hold its port. The group's id cannot be reused while one of them runs.
        """
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)

    def _reason_to_give_up(self, reason: str, *, ever_ready: bool) -> str:
        stays = "does not stay up" if ever_ready else "did not come up"
        return f"{self.process.name} {stays} ({reason}); see its last log lines above."

    def _say(self, text: str) -> None:
        log_line(self.process.name, text, colour=self._colour)


async def lines_of(stream: asyncio.StreamReader | None) -> AsyncIterator[str]:
    """Yield the lines of a pipe until it closes, without control characters."""
    rest = b""
    while stream is not None and (chunk := await stream.read(CHUNK_BYTES)):
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > MAX_LINE_BYTES:
            lines, rest = [*lines, rest], b""
        for line in lines:
            yield printable(line.decode(errors="replace"))
    if rest:
        yield printable(rest.decode(errors="replace"))


@contextlib.asynccontextmanager
async def open_pipe() -> AsyncIterator[tuple[asyncio.StreamReader, int]]:
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


def _describe(status: int) -> str:
    return f"exit status {status}" if status >= 0 else f"signal {-status}"
