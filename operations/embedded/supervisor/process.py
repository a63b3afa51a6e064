"""The description of a supervised child, and the policy of its restarts."""

import re
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from operations.embedded.supervisor.launch import Launch
from operations.embedded.supervisor.probes import Probe

Steps = tuple[tuple[signal.Signals, float], ...]

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
