"""Requests that hold their slots until a test lets them go."""

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context

from common.principals import Scope
from sqlgateway.run.admission import Admission

# Alice's organization has two environments.
ALICE, SANDBOX, CHARLIE, DORA = Scope(1, 1), Scope(1, 2), Scope(2, 3), Scope(3, 4)


class Runner:
    """Requests that hold their slots until they are let go."""

    def __init__(self) -> None:
        self.gate = Admission()
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
