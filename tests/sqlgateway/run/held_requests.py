"""Requests that hold their slots until a test lets them go."""

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context

import pytest

from common.principals import Scope
from sqlgateway.run.admission import counts, slots
from sqlgateway.run.admission.shared_counts import SharedCounts
from sqlgateway.run.admission.slots import Admission

# Alice's organization has two environments.
ALICE, SANDBOX, CHARLIE, DORA = Scope(1, 1), Scope(1, 2), Scope(2, 3), Scope(3, 4)


class Runner:
    """Requests that hold their slots until they are let go."""

    def __init__(self, counts: SharedCounts | None = None) -> None:
        self.gate = Admission(counts or SharedCounts(1, 256))
        self.pool = ThreadPoolExecutor(16)
        self.order: list[str] = []
        self.ends: dict[str, threading.Event] = {}

    def start(self, scope: Scope, name: str) -> "Future[None]":
        """Begin a request and wait until it runs or waits."""
        self.ends[name] = threading.Event()
        future = self.pool.submit(copy_context().run, self._hold, scope, name)
        time.sleep(0.03)
        return future

    def _hold(self, scope: Scope, name: str) -> None:
        with self.gate.slot(scope):
            self.order.append(name)
            self.ends[name].wait(5)

    def end(self, name: str) -> None:
        """Let a request end."""
        self.ends[name].set()
        time.sleep(0.03)


class Clock:
    """The time of the module: it stands still until a test moves it on."""

    def __init__(self) -> None:
        self.began_at = time.monotonic()
        self.ahead_s = 0.0
        self.sleep = time.sleep

    def monotonic(self) -> float:
        """Return the time."""
        return self.began_at + self.ahead_s

    def pass_s(self, seconds: float) -> None:
        """Move on so long, and a little more than the numbers are rounded by."""
        self.ahead_s += seconds + 0.0001


def stop_time(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return the time by which requests are admitted from now on."""
    clock = Clock()
    for module in (slots, counts, counts):
        monkeypatch.setattr(module, "time", clock)
    return clock
