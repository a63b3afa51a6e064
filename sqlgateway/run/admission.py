"""Admission: which SQL requests run, which wait, and which are refused.

A request that runs or waits holds a thread of the web server. The limits of both are well below the
number of threads (sqlgateway/checks.py), so that sign-in, health checks and the console always find
a thread, however many statements wait for PostgreSQL.

Every limit is of this process; all processes together run as many times more. ZSQL_RUNNING limits
all requests, and a further setting those of an organization. A free slot goes to the cluster that
runs the fewest requests, then to organizations in turn, then to their environments in turn. A
cluster that runs nothing may run one request even if others have all slots, because a silent
cluster may hold them for long; it takes the place of one that waits, so the threads stay the same.
"""

import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from django.conf import settings

from common.errors import PlatformError
from common.metrics.publishing import add_publisher
from common.principals import Scope
from common.web import client_presence
from sqlgateway import metrics
from sqlgateway.clusters.placements import PLACEMENT_CACHE
from sqlgateway.errors import QueryCancelled, SqlBusy, TooManyQueries

# Longest wait for a slot, and for a share of large results.
QUEUE_WAIT_S: Final = 2.0


class AdmissionLimits(NamedTuple):
    """The requests of an organization and of an environment that this process runs concurrently."""

    organization: int
    environment: int


class _Request(threading.Event):
    """A request that runs or waits; set when its wait is over.

    cluster_id: of its environment's database; 0 if that is not known yet.
    """

    def __init__(self, scope: Scope) -> None:
        super().__init__()
        self.scope = scope
        self.cluster_id = PLACEMENT_CACHE.cluster_of(scope.environment_pk)
        self.is_running = False


class _Counts:
    """Requests, counted by organization, environment and cluster."""

    def __init__(self) -> None:
        self.total = 0
        self.of_organization: Counter[Hashable] = Counter()
        self.of_environment: Counter[Hashable] = Counter()
        self.of_cluster: Counter[Hashable] = Counter()

    def add(self, request: _Request, number: int) -> None:
        """Add a request, or remove it (-1)."""
        self.total += number
        for counts, key in (
            (self.of_organization, request.scope.organization_id),
            (self.of_environment, request.scope.environment_pk),
            (self.of_cluster, request.cluster_id),
        ):
            counts[key] += number
            if not counts[key]:
                del counts[key]


class Admission:
    """The slots of this process, and a short queue for each environment."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = _Counts()
        self._waiting = _Counts()
        # In the order in which the environments get slots.
        self._queues: OrderedDict[Scope, deque[_Request]] = OrderedDict()
        # Organizations that use their extra slot for the end of a transaction.
        self._ending: set[int] = set()

    @contextmanager
    def slot(self, scope: Scope) -> Iterator[None]:
        """Hold a slot while the block runs; wait for it up to QUEUE_WAIT_S.

        Raises TooManyQueries (429, caused by the organization itself), SqlBusy (503), or
        QueryCancelled if the client disconnects while it waits.
        """
        request = _Request(scope)
        self._enter(request)
        try:
            yield
        finally:
            self._leave(request)

    @contextmanager
    def slot_for_end(self, scope: Scope) -> Iterator[None]:
        """Hold a slot for the end of a transaction while the block runs.

        An organization whose slots are taken gets one extra slot, because its statements may be
        waiting for locks that only the end of this transaction releases. The limit of the whole
        process still applies.
        Raises the errors of ``slot``.
        """
        request = _Request(scope)
        with self._lock:
            is_extra = (
                not self._may_run(request)
                and scope.organization_id not in self._ending
                and self._running.total < settings.SQL.running
            )
            if is_extra:
                self._ending.add(scope.organization_id)
                self._start(request)
        if not is_extra:
            with self.slot(scope):
                yield
            return
        try:
            yield
        finally:
            self._ending.discard(scope.organization_id)
            self._leave(request)

    def publish(self) -> None:
        """Write how many requests run and wait now to the metrics."""
        metrics.RUNNING.set(self._running.total)
        metrics.WAITING.set(self._waiting.total)

    def _enter(self, request: _Request) -> None:
        """Start a request, after a wait if it is necessary."""
        with self._lock:
            if (
                request.scope not in self._queues
                and self._may_run(request)
                and self._has_thread(request)
            ):
                self._start(request)
                return
            if not self._may_wait(request):
                raise self._refusal(request)
            self._queues.setdefault(request.scope, deque()).append(request)
            self._waiting.add(request, 1)
        request.wait(QUEUE_WAIT_S)
        with self._lock:
            if not request.is_running:
                self._remove(request)
                raise self._refusal(request)
        if client_presence.is_gone():
            self._leave(request)
            metrics.REFUSED.labels("client_gone").inc()
            raise QueryCancelled("The client went away.")

    def _leave(self, request: _Request) -> None:
        with self._lock:
            self._running.add(request, -1)
            while (chosen := self._next()) is not None:
                self._remove(chosen)
                self._start(chosen)
                self._move_to_end(chosen.scope)
                chosen.set()

    def _start(self, request: _Request) -> None:
        request.is_running = True
        self._running.add(request, 1)

    def _may_run(self, request: _Request) -> bool:
        """True if a request may take a slot.

        The fewer slots are free, the fewer an organization may have: its second one requires more
        than a quarter of all to be free, its third more than half.
        """
        if not self._is_within_limits(request.scope):
            return False
        taken, of = self._running.total, settings.SQL.running
        if taken >= of > 0:
            return not self._running.of_cluster[request.cluster_id]
        own = self._running.of_organization[request.scope.organization_id]
        return is_fair(own, taken=taken, of=of)

    def _is_within_limits(self, scope: Scope) -> bool:
        limits, running = limits_of(scope), self._running
        return (
            running.of_organization[scope.organization_id] < limits.organization
            and running.of_environment[scope.environment_pk] < limits.environment
        )

    def _refusal(self, request: _Request) -> PlatformError:
        error = SqlBusy() if self._is_within_limits(request.scope) else TooManyQueries()
        metrics.REFUSED.labels(error.code).inc()
        return error

    # --- the queue ------------------------------------------------------------------------------

    def _next(self) -> _Request | None:
        """Return the waiting request that gets a free slot, None if none may run."""
        first = (queue[0] for queue in self._queues.values())
        ready = (request for request in first if self._may_run(request))
        # Of equal ones min returns the first.
        return min(ready, key=lambda each: self._running.of_cluster[each.cluster_id], default=None)

    def _may_wait(self, request: _Request) -> bool:
        """True if the queue has room for a request; a full one may give up another cluster's."""
        if not limits_of(request.scope).organization:
            return False
        own = self._waiting.of_organization[request.scope.organization_id]
        taken, of = self._places(), settings.SQL.queue
        if is_fair(own, taken=taken, of=of):
            return True
        return not own and taken >= of and self._refuse_one_for(request)

    def _has_thread(self, request: _Request) -> bool:
        """True if a request that may run has a thread; a full queue may give up a place for it."""
        if self._running.total < settings.SQL.running or self._places() < settings.SQL.queue:
            return True
        return self._refuse_one_for(request)

    def _places(self) -> int:
        """Return the places of the queue that are taken, also by what runs beyond ZSQL_RUNNING."""
        return self._waiting.total + max(0, self._running.total - settings.SQL.running)

    def _refuse_one_for(self, request: _Request) -> bool:
        """End a wait of the cluster with the most requests.

        False if none waits, or if that cluster has hardly more requests than this one's.
        """
        of_cluster = Counter(self._running.of_cluster)
        of_cluster.update(self._waiting.of_cluster)
        largest = max(
            self._waiting.of_cluster, key=of_cluster.__getitem__, default=request.cluster_id
        )
        if of_cluster[largest] <= of_cluster[request.cluster_id] + 1:
            return False
        for queue in reversed(self._queues.values()):
            if queue[-1].cluster_id == largest:
                refused = queue[-1]
                self._remove(refused)
                refused.set()
                return True
        return False

    def _remove(self, request: _Request) -> None:
        """Remove a waiting request; nothing if it was removed already."""
        queue = self._queues.get(request.scope)
        if queue is None or request not in queue:
            return
        queue.remove(request)
        self._waiting.add(request, -1)
        if not queue:
            del self._queues[request.scope]

    def _move_to_end(self, served: Scope) -> None:
        """Move an organization's environments behind all others, this one to the very end."""
        of_same = [each for each in self._queues if each.organization_id == served.organization_id]
        for scope in sorted(of_same, key=served.__eq__):
            self._queues.move_to_end(scope)


def is_fair(own: int, *, taken: int, of: int) -> bool:
    """True if an organization that holds ``own`` slots may take another one.

    The first requires one free slot; the second requires more than a quarter of all slots to be
    free; the third, more than half.
    """
    return own * max(of // 4, 1) < of - taken


def limits_of(scope: Scope) -> AdmissionLimits:
    """Return the limits of a scope. An organization's own limit replaces both."""
    own = PLACEMENT_CACHE.statements(scope.environment_pk)
    if own is not None:
        return AdmissionLimits(own, own)
    shared = settings.SQL
    return AdmissionLimits(shared.running_per_organization, shared.running_per_environment)


ADMISSION: Final = Admission()
add_publisher(ADMISSION.publish)
