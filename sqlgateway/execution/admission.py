"""Admission: which SQL requests run at once, which wait, and which are refused.

A request that runs or waits holds a thread of the web server, so both are bounded in all, well
below the number of threads (sqlgateway/checks.py): however many statements wait for PostgreSQL,
sign-in, health and the console find a thread. Counts are for this process, but of what an
organization may run beside others: that is counted in all processes (shared_counts.py), or a
machine's processes together would give one of them all its processors.
"""

import os
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from django.conf import settings

from platform_site.lib.errors import PlatformError
from platform_site.lib.metrics.publishing import add_publisher
from platform_site.lib.principals import Scope
from platform_site.lib.web import clients
from platform_site.lib.web.compute_slots import waiting
from sqlgateway import metrics
from sqlgateway.errors import QueryCancelled, SqlBusy, TooManyQueries
from sqlgateway.execution import shared_counts
from sqlgateway.execution.limits import Marked, is_fair, limits_of
from sqlgateway.execution.shared_counts import SharedCounts

# What has run for so long may only be waiting for something.
SLOW_S: Final = 1.0
# Requests of an organization that ran for less lately count in their own process alone, until they
# have run for so long: to be woken by another process would take longer.
SHORT_S: Final = 0.005
LATELY_S: Final = 1.0
# How long a process leaves an organization's next slot to another in which it waits as well, and
# how often it looks whether time has freed a slot.
LOOK_S: Final = 0.02
# How late a refusal is answered, and how many threads may wait for that.
REFUSAL_S: Final = 0.1
LATE_REFUSALS: Final = 8
# An organization that began none for so long does not need the processors now.
ACTIVE_S: Final = 1.0


class _Slot(NamedTuple):
    """A request that runs. entry: in the shared counts. began_at: time.monotonic().

    is_counted: in all processes from its beginning.
    """

    entry: int
    began_at: float
    is_counted: bool


class _Turn(threading.Event):
    """A request that waits; set when it may run. entry: in the shared counts."""

    def __init__(self, entry: int) -> None:
        super().__init__()
        self.entry = entry
        self.slot: _Slot | None = None


Queues = OrderedDict[int, deque[_Turn]]


class Admission:
    """Slots, and a short queue for each environment.

    Free slots go to the waiting organizations in turn, and within each to its environments in
    turn, so that a long queue of one tenant does not delay another's first request.
    """

    def __init__(self, counts: SharedCounts | None = None) -> None:
        """Admit requests; counts: those of all processes, by default this process's."""
        self._counts = counts or shared_counts.current()
        self._lock = threading.Lock()
        self._total = 0
        self._of_environment: Counter[int] = Counter()
        # Organizations that end a transaction in the slot that each has besides.
        self._ending: set[int] = set()
        self._of_organization: Counter[int] = Counter()
        # Organizations that ran a request lately which was not short.
        self._long_lately = Marked(LATELY_S)
        # Organizations whose next slot is left to another process.
        self._left_to_another = Marked(LOOK_S)
        self._listener: threading.Thread | None = None
        self._waits = 0
        self._late_refusals = threading.BoundedSemaphore(LATE_REFUSALS)
        self._waiting: OrderedDict[int, Queues] = OrderedDict()

    @contextmanager
    def slot(self, scope: Scope) -> Iterator[None]:
        """Hold a slot while the block runs; wait for it up to SQL_QUEUE_WAIT_MS.

        Raises TooManyQueries (429, caused by the organization itself) or SqlBusy (503).
        """
        slot = self._enter(scope)
        try:
            yield
        finally:
            self._leave(scope, slot)

    @contextmanager
    def slot_to_end(self, scope: Scope) -> Iterator[None]:
        """Hold a slot for the end of a transaction while the block runs.

        An organization whose slots are taken has one besides: statements that wait for the
        transaction's locks must not keep it from releasing them. In all there are no more.
        Raises what ``slot`` raises.
        """
        slot = None
        with self._lock:
            self._give_freed_by_time(scope)
            is_besides = (
                not self._is_free(scope)
                and scope.organization_id not in self._ending
                and self._total < settings.SQL.running
            )
            if is_besides:
                self._ending.add(scope.organization_id)
                slot = self._take(scope)
        if slot is None:
            with self.slot(scope):
                yield
            return
        try:
            yield
        finally:
            self._ending.discard(scope.organization_id)
            self._leave(scope, slot)

    def _enter(self, scope: Scope) -> _Slot:
        """Wait for a slot, and return it."""
        with self._lock:
            self._give_freed_by_time(scope)
            if scope.environment_pk not in self._queues(scope):
                slot = self._try_to_take(scope)
                if slot is not None:
                    return slot
            turn = self._enqueue(scope) if self._may_wait(scope) else self._refusal(scope)
        if isinstance(turn, PlatformError):
            self._slow_down()
            raise turn
        with waiting():
            turn.wait(settings.SQL.queue_wait_ms / 1000)
        with self._lock:
            # The slot may have been granted at the moment the wait ended.
            if turn.slot is None:
                self._remove(scope, turn)
                raise self._refusal(scope)
        if clients.is_gone():
            self._leave(scope, turn.slot)
            metrics.REFUSED.labels("client_gone").inc()
            raise QueryCancelled("The client went away.")
        return turn.slot

    def _slow_down(self) -> None:
        """Answer a refusal late, a few at a time.

        A client that tries again at once, whatever Retry-After says, would take more of the
        processor by its refusals than by its statements.
        """
        if self._late_refusals.acquire(blocking=False):
            with waiting():
                time.sleep(REFUSAL_S)
            self._late_refusals.release()

    def _leave(self, scope: Scope, slot: _Slot) -> None:
        with self._lock:
            self._total -= 1
            _decrement(self._of_environment, scope.environment_pk)
            _decrement(self._of_organization, scope.organization_id)
            self._counts.running.remove(slot.entry)
            was_long = time.monotonic() - slot.began_at >= SHORT_S
            if was_long:
                self._long_lately.add(scope.organization_id)
            if (was_long or slot.is_counted) and self._counts.wake_another(scope.organization_id):
                self._left_to_another.add(scope.organization_id)
            self._give()

    def _listen(self) -> None:
        """Assign slots that other processes or time have freed, while requests wait."""
        while True:
            is_rung = self._counts.wait_for_bell(LOOK_S if self._waits else None)
            with self._lock:
                if is_rung:
                    self._left_to_another.clear()
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
                slot = self._try_to_take(scope)
                if slot is None:
                    continue
                # Both go behind those that have waited longer for their turn.
                queues.move_to_end(environment_pk)
                self._waiting.move_to_end(organization_id)
                turn = queue[0]
                turn.slot = slot
                self._remove(scope, turn)
                turn.set()
                return True
        return False

    def _is_free(self, scope: Scope) -> bool:
        """True if the scope's next request may run.

        Organizations that run all they may never keep out one that runs nothing.
        """
        own = self._of_organization[scope.organization_id]
        return (
            self._has_room(scope)
            and self._of_environment[scope.environment_pk] < limits_of(scope).environment
            and is_fair(own, taken=self._total, of=settings.SQL.running)
        )

    def _has_room(self, scope: Scope) -> bool:
        """True if the organization may run one more.

        Few in all processes while others are served, since each further one at once takes processor
        time from theirs; beside slow ones in this process as many as one of its environments may.
        """
        limits = limits_of(scope)
        own = self._of_organization[scope.organization_id]
        if (
            own >= limits.organization
            or limits.beside_others is None
            or not self._are_others_served(scope.organization_id)
        ):
            return own < limits.organization
        if scope.organization_id in self._left_to_another:
            return False
        counted = self._counted(scope)
        is_beside_slow = own > sum(row == self._counts.row for row, _ in counted)
        share = max(limits.beside_others, limits.environment if is_beside_slow else 0)
        return len(counted) < limits.beside_others and own < share

    def _counted(self, scope: Scope) -> list[tuple[int, float]]:
        """Return the organization's requests that count in this process, as the shared counts do.

        Not those that are slow, and not those of other processes that are short.
        """
        now = time.monotonic()
        return [
            (row, began_at)
            for row, began_at in self._counts.running.of(scope.organization_id)
            if now - began_at < SLOW_S and (row == self._counts.row or now - began_at >= SHORT_S)
        ]

    def _are_others_served(self, organization_id: int) -> bool:
        return self._counts.served.has_another(organization_id, since=time.monotonic() - ACTIVE_S)

    def _try_to_take(self, scope: Scope) -> _Slot | None:
        """Take a slot if the scope's next request may run."""
        if not self._is_free(scope):
            return None
        return self._take(scope)

    def _take(self, scope: Scope) -> _Slot:
        now = time.monotonic()
        is_counted = scope.organization_id in self._long_lately
        counts_from = now - SHORT_S if is_counted else now
        entry = self._counts.running.add(self._counts.row, scope.organization_id, counts_from)
        self._total += 1
        self._of_environment[scope.environment_pk] += 1
        self._of_organization[scope.organization_id] += 1
        self._counts.served.put_first(self._counts.row, scope.organization_id, now)
        return _Slot(entry, now, is_counted)

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
        is_behind_slow = self._of_organization[scope.organization_id] and not self._counted(scope)
        # What is left to another process for a moment is no slow statement.
        if is_behind_slow and scope.organization_id not in self._left_to_another:
            return False
        queues = self._queues(scope)
        own = sum(map(len, queues.values()))
        if len(queues.get(scope.environment_pk, ())) >= limits.queue_per_environment:
            return False
        return is_fair(own, taken=self._waits, of=limits.queue)

    def _enqueue(self, scope: Scope) -> _Turn:
        if self._listener is None:
            listener = threading.Thread(target=self._listen, name="sql-admission", daemon=True)
            listener.start()
            self._listener = listener
        own, organization_id = self._counts.row, scope.organization_id
        turn = _Turn(self._counts.waiting.add(own, organization_id, time.monotonic()))
        queues = self._waiting.setdefault(scope.organization_id, OrderedDict())
        queues.setdefault(scope.environment_pk, deque()).append(turn)
        self._waits += 1
        if self._waits == 1:
            self._counts.wake()
        return turn

    def _remove(self, scope: Scope, turn: _Turn) -> None:
        queues = self._waiting[scope.organization_id]
        queues[scope.environment_pk].remove(turn)
        self._counts.waiting.remove(turn.entry)
        self._waits -= 1
        if not queues[scope.environment_pk]:
            del queues[scope.environment_pk]
        if not queues:
            del self._waiting[scope.organization_id]

    def _refusal(self, scope: Scope) -> PlatformError:
        in_environment = self._of_environment[scope.environment_pk]
        is_full = in_environment >= limits_of(scope).environment
        is_own = is_full or not self._has_room(scope)
        error = TooManyQueries() if is_own else SqlBusy()
        metrics.REFUSED.labels(error.code).inc()
        return error


def _decrement(counts: Counter[int], key: int) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]


NO_QUEUES: Final[Queues] = OrderedDict()
ADMISSION = Admission()
add_publisher(ADMISSION.publish)


def _after_fork() -> None:
    ADMISSION.__init__()  # type: ignore[misc]  # a child runs none of its parent's requests


os.register_at_fork(after_in_child=_after_fork)
