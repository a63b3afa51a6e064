"""Admission: which SQL requests run at once, which wait, and which are refused.

A request that runs or waits holds a thread of the web server, so both are bounded in all, well
below the number of threads (sqlgateway/checks.py): however many statements wait for PostgreSQL,
sign-in, health and the console find a thread. Counts are for this process.
"""

import os
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Final, NamedTuple

from django.conf import settings

from platform_site.lib.errors import PlatformError
from platform_site.lib.metrics.publishing import add_publisher
from platform_site.lib.principals import Scope
from platform_site.lib.web import clients
from platform_site.lib.web.compute_slots import waiting
from sqlgateway import metrics
from sqlgateway.errors import QueryCancelled, SqlBusy, TooManyQueries
from sqlgateway.provisioning.placements import CACHE

# Statements of an organization that began none for so long are slow.
SLOW_S: Final = 1.0
# How late a refusal is answered, and how many threads may wait for that.
REFUSAL_S: Final = 0.1
LATE_REFUSALS: Final = 8
# An organization that began none for so long does not need the processors now.
ACTIVE_S: Final = 1.0


class _Turn(threading.Event):
    """A request that waits; set when it may run. began_at: when it did (time.monotonic())."""

    began_at = 0.0


Queues = OrderedDict[int, deque[_Turn]]


class Admission:
    """Slots, and a short queue for each environment.

    Free slots go to the waiting organizations in turn, and within each to its environments in
    turn, so that a long queue of one tenant does not delay another's first request.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._total = 0
        self._of_environment: Counter[int] = Counter()
        # Organizations that end a transaction in the slot that each has besides.
        self._ending: set[int] = set()
        # When each of an organization's running requests began (time.monotonic()), the newest last.
        self._began_at: dict[int, list[float]] = {}
        # When each organization that was served lately began its latest one, the newest last.
        self._active: OrderedDict[int, float] = OrderedDict()
        self._waits = 0
        self._late_refusals = threading.BoundedSemaphore(LATE_REFUSALS)
        self._waiting: OrderedDict[int, Queues] = OrderedDict()

    @contextmanager
    def slot(self, scope: Scope) -> Iterator[None]:
        """Hold a slot while the block runs; wait for it up to SQL_QUEUE_WAIT_MS.

        Raises TooManyQueries (429, caused by the organization itself) or SqlBusy (503).
        """
        began_at = self._enter(scope)
        try:
            yield
        finally:
            self._leave(scope, began_at)

    @contextmanager
    def slot_to_end(self, scope: Scope) -> Iterator[None]:
        """Hold a slot for the end of a transaction while the block runs.

        An organization whose slots are taken has one besides: statements that wait for the
        transaction's locks must not keep it from releasing them. In all there are no more.
        Raises what ``slot`` raises.
        """
        began_at = None
        with self._lock:
            self._give_freed_by_time(scope)
            is_besides = (
                not self._is_free(scope)
                and scope.organization_id not in self._ending
                and self._total < settings.SQL.running
            )
            if is_besides:
                self._ending.add(scope.organization_id)
                began_at = self._take(scope)
        if began_at is None:
            with self.slot(scope):
                yield
            return
        try:
            yield
        finally:
            self._ending.discard(scope.organization_id)
            self._leave(scope, began_at)

    def _enter(self, scope: Scope) -> float:
        """Wait for a slot, and return when it was taken."""
        with self._lock:
            self._give_freed_by_time(scope)
            if scope.environment_pk not in self._queues(scope) and self._is_free(scope):
                return self._take(scope)
            turn = self._enqueue(scope) if self._may_wait(scope) else self._refusal(scope)
        if isinstance(turn, PlatformError):
            self._slow_down()
            raise turn
        with waiting():
            self._wait(scope, turn)
        with self._lock:
            # The slot may have been granted at the moment the wait ended.
            if not turn.is_set():
                self._remove(scope, turn)
                raise self._refusal(scope)
        if clients.is_gone():
            self._leave(scope, turn.began_at)
            metrics.REFUSED.labels("client_gone").inc()
            raise QueryCancelled("The client went away.")
        return turn.began_at

    def _wait(self, scope: Scope, turn: _Turn) -> None:
        """Wait for the turn, up to SQL_QUEUE_WAIT_MS."""
        give_up_at = time.monotonic() + settings.SQL.queue_wait_ms / 1000
        while (left_s := give_up_at - time.monotonic()) > 0:
            with self._lock:
                slow_in_s = self._slow_in_s(scope)
            # Nobody says so when what runs becomes slow.
            if turn.wait(min(left_s, slow_in_s if slow_in_s > 0 else SLOW_S)):
                return
            with self._lock:
                self._give()

    def _slow_down(self) -> None:
        """Answer a refusal late, a few at a time.

        A client that tries again at once, whatever Retry-After says, would take more of the
        processor by its refusals than by its statements.
        """
        if self._late_refusals.acquire(blocking=False):
            with waiting():
                time.sleep(REFUSAL_S)
            self._late_refusals.release()

    def _leave(self, scope: Scope, began_at: float) -> None:
        with self._lock:
            self._total -= 1
            self._of_environment[scope.environment_pk] -= 1
            if not self._of_environment[scope.environment_pk]:
                del self._of_environment[scope.environment_pk]
            self._began_at[scope.organization_id].remove(began_at)
            if not self._began_at[scope.organization_id]:
                del self._began_at[scope.organization_id]
            self._give()

    def _give(self) -> None:
        """Assign the free slots to the requests that wait."""
        while self._give_one():
            pass

    def _give_freed_by_time(self, scope: Scope) -> None:
        """Assign the slots that time has freed for an organization: what it runs became slow."""
        if scope.organization_id in self._waiting:
            self._give()

    def _give_one(self) -> bool:
        """Assign a slot to the first waiting request that may run; False if there is none."""
        for organization_id, queues in self._waiting.items():
            for environment_pk, queue in queues.items():
                scope = Scope(organization_id, environment_pk)
                if not self._is_free(scope):
                    continue
                began_at = self._take(scope)
                # Both go behind those that have waited longer for their turn.
                queues.move_to_end(environment_pk)
                self._waiting.move_to_end(organization_id)
                turn = queue[0]
                turn.began_at = began_at
                self._remove(scope, turn)
                turn.set()
                return True
        return False

    def _is_free(self, scope: Scope) -> bool:
        """True if the scope's next request may run.

        Organizations that run all they may never keep out one that runs nothing.
        """
        own = self._running(scope)
        return (
            own < self._share_of(scope)
            and self._of_environment[scope.environment_pk] < _limits_of(scope).environment
            and _is_fair(own, taken=self._total, of=settings.SQL.running)
        )

    def _running(self, scope: Scope) -> int:
        return len(self._began_at.get(scope.organization_id, ()))

    def _share_of(self, scope: Scope) -> int:
        """Return how many requests an organization may run now.

        Few while others are served, since each further one at once takes processor time from
        theirs; beside slow ones, which may only wait for something, as many as one of its
        environments may.
        """
        limits = _limits_of(scope)
        if not self._are_others_served(scope.organization_id):
            return limits.organization
        share = limits.beside_others
        if self._slow_in_s(scope) <= 0:
            share = max(share, limits.environment)
        return min(share, limits.organization)

    def _are_others_served(self, organization_id: int) -> bool:
        oldest = time.monotonic() - ACTIVE_S
        return any(
            other_id != organization_id and self._active[other_id] > oldest
            for other_id in islice(reversed(self._active), 2)
        )

    def _slow_in_s(self, scope: Scope) -> float:
        """Return in how many seconds all that an organization runs has run for SLOW_S.

        0 or less if it has; SLOW_S if it runs nothing.
        """
        began_at = self._began_at.get(scope.organization_id)
        return SLOW_S if began_at is None else began_at[-1] + SLOW_S - time.monotonic()

    def _take(self, scope: Scope) -> float:
        """Take a slot; return when."""
        now = time.monotonic()
        self._total += 1
        self._began_at.setdefault(scope.organization_id, []).append(now)
        self._active[scope.organization_id] = now
        self._active.move_to_end(scope.organization_id)
        while next(iter(self._active.values())) < now - ACTIVE_S:
            self._active.popitem(last=False)
        self._of_environment[scope.environment_pk] += 1
        return now

    def publish(self) -> None:
        """Write how many requests run and wait now to the metrics."""
        metrics.RUNNING.set(self._total)
        metrics.WAITING.set(self._waits)

    # --- the queue ------------------------------------------------------------------------------

    def _queues(self, scope: Scope) -> Queues:
        return self._waiting.get(scope.organization_id, NO_QUEUES)

    def _may_wait(self, scope: Scope) -> bool:
        """True if the queue has a place for the scope's next request.

        Not behind slow statements: it would wait in vain, in a place that others could use.
        """
        limits = settings.SQL
        if self._slow_in_s(scope) <= 0:
            return False
        queues = self._queues(scope)
        own = sum(map(len, queues.values()))
        if len(queues.get(scope.environment_pk, ())) >= limits.queue_per_environment:
            return False
        return _is_fair(own, taken=self._waits, of=limits.queue)

    def _enqueue(self, scope: Scope) -> _Turn:
        turn = _Turn()
        queues = self._waiting.setdefault(scope.organization_id, OrderedDict())
        queues.setdefault(scope.environment_pk, deque()).append(turn)
        self._waits += 1
        return turn

    def _remove(self, scope: Scope, turn: _Turn) -> None:
        queues = self._waiting[scope.organization_id]
        queues[scope.environment_pk].remove(turn)
        self._waits -= 1
        if not queues[scope.environment_pk]:
            del queues[scope.environment_pk]
        if not queues:
            del self._waiting[scope.organization_id]

    def _refusal(self, scope: Scope) -> PlatformError:
        in_environment = self._of_environment[scope.environment_pk]
        is_full = in_environment >= _limits_of(scope).environment
        is_own = is_full or self._running(scope) >= self._share_of(scope)
        error = TooManyQueries() if is_own else SqlBusy()
        metrics.REFUSED.labels(error.code).inc()
        return error


class _Limits(NamedTuple):
    """Of requests that run at once."""

    organization: int
    environment: int
    beside_others: int


def _limits_of(scope: Scope) -> _Limits:
    """Return the limits of an organization: its own, for all that is limited, or all's."""
    own = CACHE.statements(scope.environment_pk)
    if own is not None:
        return _Limits(own, own, own)
    shared = settings.SQL
    return _Limits(
        shared.running_per_organization,
        shared.running_per_environment,
        shared.running_beside_others,
    )


def _is_fair(own: int, *, taken: int, of: int) -> bool:
    """True if an organization that holds some places may take another.

    The fewer are free, the fewer it may hold: for a second place more than a quarter must be free,
    for a third more than half. A first one is always granted while there is any.
    """
    return own * max(of // 4, 1) < of - taken


NO_QUEUES: Final[Queues] = OrderedDict()
ADMISSION = Admission()
add_publisher(ADMISSION.publish)


def _after_fork() -> None:
    ADMISSION.__init__()  # type: ignore[misc]  # a child runs none of its parent's requests


os.register_at_fork(after_in_child=_after_fork)
