"""Keep a list of processes running, and stop them in reverse order.

A child that does not stay up stops all processes, with one sentence and exit status 1.
"""

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final

from common.machine.errors import StartError, SupervisorError
from common.machine.terminal import log_line, say, warn
from operations.embedded.supervisor.known_processes import Roster
from operations.embedded.supervisor.launch import Launch
from operations.embedded.supervisor.process import Process, RestartPolicy
from operations.embedded.supervisor.supervised import SupervisedProcess, lines_of

STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
DEFAULT_RESTART_POLICY: Final = RestartPolicy()

Scenario = Callable[["Supervisor"], Awaitable[None]]


class Supervisor:
    """The children of one command; construct and run it in the main thread.

    The main thread forks every child: Linux ends children with the *thread* that forked them.
    """

    def __init__(
        self, data_dir: Path, *, restart_policy: RestartPolicy = DEFAULT_RESTART_POLICY
    ) -> None:
        """data_dir: the folder of the roster; its lock must be held."""
        self._roster = Roster(data_dir)
        self._restart_policy = restart_policy
        self._children: list[SupervisedProcess] = []
        self._halt = asyncio.Event()
        self._second_interrupt = asyncio.Event()
        self._failure: StartError | None = None

    def end_leftovers(self) -> int:
        """End the children of a supervisor that was killed; return their number. Blocks."""
        return self._roster.end_leftovers()

    async def run(self, scenario: Scenario) -> int:
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
            self._fail(error)
        finally:
            await _cancel(playing)
            await _cancel(halting)
            await self._stop_all()
            say("Everything has stopped.")
        if self._failure is not None:
            warn(str(self._failure))
        return 1 if self._failure else 0

    async def start(self, processes: Sequence[Process]) -> None:
        """Start processes, each after those it needs, and wait until all are ready."""
        fresh = [self._add(process) for process in processes]
        for child in fresh:
            child.begin()
        for child in fresh:
            await child.ready.wait()

    async def complete(self, name: str, launch: Launch) -> str:
        """Run a command to its end and return its standard output; its errors are logged.

        Raises SupervisorError if it fails.
        """
        child = await asyncio.create_subprocess_exec(
            *launch.argv(),
            env=launch.env,
            cwd=launch.cwd,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            process_group=0,
        )
        try:
            output, _ = await asyncio.gather(_read(child.stdout), _log(name, child.stderr))
            status = await child.wait()
        except asyncio.CancelledError:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await child.wait()
            raise
        if status != 0:
            sentence = f"{name} failed (exit status {status}); see its output above."
            raise SupervisorError(sentence)
        return output

    def pids(self) -> dict[str, int]:
        """Return the running children's ids by name."""
        return {child.process.name: child.pid for child in self._children if child.pid}

    def _add(self, process: Process) -> SupervisedProcess:
        by_name = {child.process.name: child for child in self._children}
        child = SupervisedProcess(
            process,
            colour=len(self._children),
            roster=self._roster,
            restart_policy=self._restart_policy,
            needs=[by_name[name] for name in process.needs if name in by_name],
            give_up=self._fail,
            second_interrupt=self._second_interrupt,
        )
        self._children.append(child)
        return child

    def _on_signal(self) -> None:
        if self._halt.is_set():
            self._second_interrupt.set()
            return
        say("\nStopping; press Ctrl-C again to stop immediately.")
        self._halt.set()

    def _fail(self, error: StartError) -> None:
        if self._failure is None:
            self._failure = error
        self._halt.set()

    async def _stop_all(self) -> None:
        for child in reversed(self._children):
            await child.stop()


async def _cancel(task: "asyncio.Future[Any]") -> None:
    """Cancel a task and ignore its exception."""
    task.cancel()
    await asyncio.wait({task})


async def _read(stream: asyncio.StreamReader | None) -> str:
    return (await stream.read()).decode(errors="replace") if stream else ""


async def _log(name: str, stream: asyncio.StreamReader | None) -> None:
    async for line in lines_of(stream):
        log_line(name, line)
