"""Requests that hold their slots until a test lets them go."""

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context

from common.principals import Scope
from sqlgateway.run.admission import Admission
from tests.waiting import wait_until

# Alice's organization has two environments.
ALICE, SANDBOX, CHARLIE, DORA = Scope(1, 1), Scope(1, 2), Scope(2, 3), Scope(3, 4)


class Runner:
    """Requests that hold their slots until they are let go."""

    def __init__(self) -> None:
        self.gate = Admission()
        self.pool = ThreadPoolExecutor(64)
        self.order: list[str] = []
        self.ends: dict[str, threading.Event] = {}
        self.futures: dict[str, Future[None]] = {}

    def start(self, scope: Scope, name: str) -> "Future[None]":
        """Begin a request and wait until it runs, waits or is refused."""
        self.ends[name] = threading.Event()
        future = self.pool.submit(copy_context().run, self._hold, scope, name)
        self.futures[name] = future
        wait_until(self._is_settled)
        return future

    def _hold(self, scope: Scope, name: str) -> None:
        with self.gate.slot(scope):
            self.order.append(name)
            self.ends[name].wait(60)

    def _is_settled(self) -> bool:
        """True if all have run, wait or are refused."""
        ended = [future for future in self.futures.values() if future.done()]
        refused = sum(future.exception() is not None for future in ended)
        return len(self.order) + self.gate._waiting.total + refused == len(self.futures)

    def end(self, name: str) -> None:
        """Let a request end, and wait until those run that may."""
        self.ends[name].set()
        wait_until(lambda: self.futures[name].done() and self._is_settled())
