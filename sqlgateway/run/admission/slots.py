"""Admission: which SQL requests run, which wait, and which are refused.

A request that runs or waits holds a thread of the web server. The limits of both are well below the
number of threads (sqlgateway/checks.py), so that sign-in, health checks and the console always find
a thread, however many statements wait for PostgreSQL.

Limits apply in this process, except one that all processes share (shared_counts.py): how many
requests an organization runs while other organizations are active. Without it one organization
could occupy all processors.
"""

import os
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import structlog
from django.conf import settings

from common.errors import PlatformError
from common.metrics.publishing import add_publisher
from common.principals import Scope
from common.web import client_presence
from common.web.compute_slots import waiting
from sqlgateway import metrics
from sqlgateway.clusters.placements import PLACEMENT_CACHE
from sqlgateway.errors import QueryCancelled, SqlBusy, TooManyQueries
from sqlgateway.run.admission import shared_counts
from sqlgateway.run.admission.counts import (
    RunningCounts,
    RunningSlot,
    is_fair,
    is_fair_among_clusters,
)
from sqlgateway.run.admission.shared_counts import SharedCounts

log = structlog.get_logger(__name__)

# How often a process checks whether time has freed a slot.
POLL_S: Final = 0.02
# A refusal is sent after this delay.
REFUSAL_S: Final = 0.1
# At most this many threads delay a refusal; others refuse immediately.
LATE_REFUSALS: Final = 8


class _Turn(threading.Event):
    """A request that waits; set when it may run.

    since: when it began to wait (time.monotonic()).
    entry: its position in the shared counts while it is within its limits, otherwise None.
    slot: the slot that it was given.
    cluster_id: of its environment's database; 0 if that is not known yet.
    """

    def __init__(self, cluster_id: int) -> None:
        super().__init__()
        self.cluster_id = cluster_id
        self.since = time.monotonic()
        self.entry: int | None = None
        self.slot: RunningSlot | None = None


Queues = OrderedDict[int, deque[_Turn]]


class Admission:
    """Slots, and a short queue for each environment.

    Free slots go to the waiting organizations in turn, and within each to its environments in
    turn, so that a long queue of one tenant does not delay another's first request.
    """

    def __init__(self, counts: SharedCounts | None = None) -> None:
        """Create an empty queue. counts: by default those that this process shares with others."""
        self._counts = counts or shared_counts.current()
        self._running = RunningCounts(self._counts)
        self._lock = threading.Lock()
        # Organizations that use their extra slot for the end of a transaction.
        self._ending: set[int] = set()
        # Organizations at their own limit: a slot freed by another organization does not help them.
        self._held_back: set[int] = set()
        self._listener: threading.Thread | None = None
        self._waits = 0
        self._late_refusals = threading.BoundedSemaphore(LATE_REFUSALS)
        self._waiting: OrderedDict[int, Queues] = OrderedDict()

    @contextmanager
    def slot(self, scope: Scope) -> Iterator[None]:
        """Hold a slot while the block runs; wait for it up to ZSQL_QUEUE_WAIT_MS.

        Raises TooManyQueries (429, caused by the organization itself), SqlBusy (503), or
        QueryCancelled if the client disconnects while it waits.
        """
        slot = self._enter(scope)
        try:
            yield
        finally:
            self._leave(scope, slot)

    @contextmanager
    def slot_for_end(self, scope: Scope) -> Iterator[None]:
        """Hold a slot for the end of a transaction while the block runs.

        An organization whose slots are taken gets one extra slot, because its statements may be
        waiting for locks that only the end of this transaction releases. The limit of the whole
        process still applies.
        Raises the errors of ``slot``.
        """
        slot = None
        with self._lock:
            self._assign_to(scope.organization_id)
            is_extra = (
                not self._is_free(scope)
                and scope.organization_id not in self._ending
                and self._running.total < settings.SQL.running
                and self._running.leaves_others_slots(scope)
            )
            if is_extra:
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

    def _enter(self, scope: Scope) -> RunningSlot:
        """Wait for a slot, and return it."""
        with self._lock:
            self._assign_to(scope.organization_id)
            is_first = scope.environment_pk not in self._queues(scope.organization_id)
            if is_first and self._is_free(scope):
                return self._take(scope)
            turn = self._enqueue(scope) if self._may_wait(scope) else self._refusal(scope)
        if isinstance(turn, PlatformError):
            self._slow_down()
            raise turn
        with waiting():
            turn.wait(settings.SQL.queue_wait_ms / 1000)
        with self._lock:
            # A slot may have been granted, or become free, when the wait ended.
            if turn.slot is None:
                self._assign_to(scope.organization_id)
            if turn.slot is None:
                self._remove(scope, turn)
                raise self._refusal(scope)
        if client_presence.is_gone():
            self._leave(scope, turn.slot)
            metrics.REFUSED.labels("client_gone").inc()
            raise QueryCancelled("The client went away.")
        return turn.slot

    def _slow_down(self) -> None:
        """Delay a refusal, in at most LATE_REFUSALS threads.

        A client that ignores Retry-After and retries immediately would use more processor time for
        refusals than for statements.
        """
        if self._late_refusals.acquire(blocking=False):
            with waiting():
                time.sleep(REFUSAL_S)
            self._late_refusals.release()

    def _leave(self, scope: Scope, slot: RunningSlot) -> None:
        with self._lock:
            self._running.leave(scope, slot)
            self._announce(scope.organization_id)
            self._assign_free()

    def _listen(self) -> None:
        """Assign slots that other processes or time have freed, while requests wait."""
        polled_at = 0.0
        while True:
            left_s = max(0.0, polled_at + POLL_S - time.monotonic())
            woken = self._counts.wait_for_wakeup(left_s if self._waits else None)
            is_due = time.monotonic() - polled_at >= POLL_S
            try:
                with self._lock:
                    self._poll(woken, is_due=is_due)
            except Exception:
                # Without this thread waiting requests would never get a slot.
                log.exception("sql_admission_failed")
            if is_due:
                polled_at = time.monotonic()

    def _poll(self, woken: list[int], *, is_due: bool) -> None:
        for organization_id in woken:
            self._running.end_reservation(organization_id)
            self._assign_to(organization_id)
        if is_due:
            self._held_back = self._running.too_many(self._held_back)
            self._assign_free()

    def _assign_free(self) -> None:
        """Assign the free slots to waiting requests, one to each organization in turn."""
        # An organization that could not take a slot does not get one later in this loop.
        organizations = [each for each in self._waiting if each not in self._held_back]
        while organizations:
            organizations = [each for each in organizations if self._assign_one(each)]

    def _assign_to(self, organization_id: int) -> None:
        """Assign an organization's free slots, including those that time has freed."""
        while self._assign_one(organization_id):
            pass

    def _assign_one(self, organization_id: int) -> bool:
        """Assign a slot to the organization's first request that may run; False if none may."""
        queues = self._queues(organization_id)
        if not queues or not self._running.is_fair(organization_id):
            return False
        is_held_back = True
        for environment_pk, queue in queues.items():
            scope = Scope(organization_id, environment_pk)
            if not self._running.may_run(scope):
                continue
            if not self._running.leaves_others_slots(scope):
                # A slot freed by another organization helps.
                is_held_back = False
                continue
            # The environment and the organization move to the ends of their queues.
            queues.move_to_end(environment_pk)
            self._waiting.move_to_end(organization_id)
            turn = queue[0]
            turn.slot = self._take(scope)
            self._remove(scope, turn)
            turn.set()
            return True
        if is_held_back:
            self._held_back.add(organization_id)
        return False

    def _is_free(self, scope: Scope) -> bool:
        """True if the scope's next request may run."""
        running = self._running
        is_fair = running.is_fair(scope.organization_id) and running.leaves_others_slots(scope)
        return is_fair and running.may_run(scope)

    def _take(self, scope: Scope) -> RunningSlot:
        slot = self._running.take(scope)
        self._announce(scope.organization_id)
        return slot

    def publish(self) -> None:
        """Write how many requests run and wait now to the metrics."""
        metrics.RUNNING.set(self._running.total)
        metrics.WAITING.set(self._waits)

    # --- the queue ------------------------------------------------------------------------------

    def _queues(self, organization_id: int) -> Queues:
        return self._waiting.get(organization_id, NO_QUEUES)

    def _may_wait(self, scope: Scope) -> bool:
        """True if the queue has a place for the scope's next request.

        A request behind slow statements gets no place: it would wait in vain in a place that others
        need.
        """
        limits = settings.SQL
        if self._running.is_behind_slow(scope):
            return False
        queues = self._queues(scope.organization_id)
        own = sum(map(len, queues.values()))
        if len(queues.get(scope.environment_pk, ())) >= limits.queue_per_environment:
            return False
        cluster_id = PLACEMENT_CACHE.cluster_of(scope.environment_pk)
        in_cluster = sum(turn.cluster_id == cluster_id for turn in self._turns())
        return is_fair(own, taken=self._waits, of=limits.queue) and is_fair_among_clusters(
            in_cluster, taken=self._waits, of=limits.queue
        )

    def _turns(self) -> Iterator[_Turn]:
        for queues in self._waiting.values():
            for queue in queues.values():
                yield from queue

    def _enqueue(self, scope: Scope) -> _Turn:
        if self._listener is None:
            listener = threading.Thread(target=self._listen, name="sql-admission", daemon=True)
            listener.start()
            self._listener = listener
        turn = _Turn(PLACEMENT_CACHE.cluster_of(scope.environment_pk))
        queues = self._waiting.setdefault(scope.organization_id, OrderedDict())
        queues.setdefault(scope.environment_pk, deque()).append(turn)
        self._announce(scope.organization_id)
        self._waits += 1
        if self._waits == 1:
            self._counts.wake()
        return turn

    def _announce(self, organization_id: int) -> None:
        """Publish which waiting requests are within their limits.

        Other processes then reserve slots for them.
        """
        self._held_back.discard(organization_id)
        for environment_pk, queue in self._queues(organization_id).items():
            may_take = self._running.is_within_limits(Scope(organization_id, environment_pk))
            for turn in queue:
                if may_take and turn.entry is None:
                    row, since = self._counts.row, turn.since
                    turn.entry = self._counts.waiting.add(row, organization_id, since)
                elif not may_take:
                    self._withdraw(turn)

    def _withdraw(self, turn: _Turn) -> None:
        if turn.entry is not None:
            self._counts.waiting.remove(turn.entry)
            turn.entry = None

    def _remove(self, scope: Scope, turn: _Turn) -> None:
        queues = self._waiting[scope.organization_id]
        queues[scope.environment_pk].remove(turn)
        self._withdraw(turn)
        self._waits -= 1
        if not queues[scope.environment_pk]:
            del queues[scope.environment_pk]
        if not queues:
            del self._waiting[scope.organization_id]

    def _refusal(self, scope: Scope) -> PlatformError:
        error = SqlBusy() if self._running.may_run(scope) else TooManyQueries()
        metrics.REFUSED.labels(error.code).inc()
        return error


NO_QUEUES: Final[Queues] = OrderedDict()
ADMISSION = Admission()
add_publisher(ADMISSION.publish)


def _after_fork() -> None:
    ADMISSION.__init__()  # type: ignore[misc]  # a child runs none of its parent's requests


os.register_at_fork(after_in_child=_after_fork)
