"""Admission: how many requests run at once, of one environment and in all, and which is next."""

import os
import threading
from collections import OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings

from platform_site.lib.errors import PlatformError
from sqlgateway.errors import SqlBusy, TooManyQueries


class Admission:
    """Slots, and a short queue for each environment.

    Free slots go to the waiting environments in turn, so that a long queue of one tenant does not
    delay another's first request. Counts are for this process.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[int, int] = {}
        self._total = 0
        self._waiting: OrderedDict[int, deque[threading.Event]] = OrderedDict()

    @contextmanager
    def slot(self, environment_pk: int) -> Iterator[None]:
        """Hold a slot while the block runs.

        Raises TooManyQueries (429, caused by the environment itself) or SqlBusy (503).
        """
        self._enter(environment_pk)
        try:
            yield
        finally:
            self._leave(environment_pk)

    def _enter(self, environment_pk: int) -> None:
        with self._lock:
            if environment_pk not in self._waiting and self._is_free(environment_pk):
                self._take(environment_pk)
                return
            queue = self._waiting.setdefault(environment_pk, deque())
            if len(queue) >= settings.SQL.queue_per_environment:
                self._drop_empty(environment_pk)
                raise self._refusal(environment_pk)
            turn = threading.Event()
            queue.append(turn)
        if turn.wait(settings.SQL.queue_wait_ms / 1000):
            return
        with self._lock:
            # The slot may have been granted at the moment the wait ended.
            if turn.is_set():
                return
            queue.remove(turn)
            self._drop_empty(environment_pk)
            raise self._refusal(environment_pk)

    def _leave(self, environment_pk: int) -> None:
        with self._lock:
            self._total -= 1
            self._running[environment_pk] -= 1
            if not self._running[environment_pk]:
                del self._running[environment_pk]
            self._give_away()

    def _give_away(self) -> None:
        for environment_pk in list(self._waiting):
            if not self._is_free(environment_pk):
                continue
            queue = self._waiting[environment_pk]
            self._take(environment_pk)
            queue.popleft().set()
            self._waiting.move_to_end(environment_pk)
            self._drop_empty(environment_pk)

    def _is_free(self, environment_pk: int) -> bool:
        own = self._running.get(environment_pk, 0)
        return self._total < settings.SQL.running and own < settings.SQL.running_per_environment

    def _take(self, environment_pk: int) -> None:
        self._total += 1
        self._running[environment_pk] = self._running.get(environment_pk, 0) + 1

    def _drop_empty(self, environment_pk: int) -> None:
        if not self._waiting[environment_pk]:
            del self._waiting[environment_pk]

    def _refusal(self, environment_pk: int) -> PlatformError:
        if self._running.get(environment_pk, 0) >= settings.SQL.running_per_environment:
            return TooManyQueries()
        return SqlBusy()


ADMISSION = Admission()


def _after_fork() -> None:
    ADMISSION.__init__()  # type: ignore[misc]  # a child runs none of its parent's requests


os.register_at_fork(after_in_child=_after_fork)
