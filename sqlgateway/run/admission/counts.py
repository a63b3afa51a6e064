"""Counts of running SQL requests, their limits, and whether these leave a slot for one more.

Four limits apply:

- ``is_fair``: no organization takes most of this process's slots.
- ``leaves_others_slots``: no cluster does, so that one which is silent delays no other's requests.
- ``is_within_limits``: an organization and an environment have their own limits in this process.
- ``may_run`` adds a limit of an organization in all processes, while others are served.
  For this limit a request counts in all processes while its age is between SHORT_S and SLOW_S, and
  in its own process from its start.
"""

import time
from collections import Counter, OrderedDict
from collections.abc import Iterable
from typing import Final, NamedTuple

from django.conf import settings

from common.principals import Scope
from sqlgateway.clusters.placements import PLACEMENT_CACHE
from sqlgateway.run.admission.shared_counts import SharedCounts

# A request that has run for this long probably waits, such as for a lock, and no longer counts.
SLOW_S: Final = 1.0
# Until a request has run for this long, it counts in its own process only. On a busy machine a
# process needs some milliseconds to be woken by another; a short statement has ended by then.
SHORT_S: Final = 0.02
# After a request of more than SHORT_S, the organization's next ones count in every process from
# their beginning, for this long.
LONG_FOR_S: Final = 1.0
# How long a process reserves an organization's next slot for another process in which it waits.
RESERVED_S: Final = 0.02
# An organization that started no request for this long does not need the processors now.
ACTIVE_S: Final = 1.0


class AdmissionLimits(NamedTuple):
    """Limits of concurrently running requests.

    organization: of an organization, in this process.
    environment: of an environment, in this process.
    beside_others: of an organization in all processes, while other organizations are active.
    """

    organization: int
    environment: int
    beside_others: int | None


class RunningSlot(NamedTuple):
    """A running request.

    entry: its position in the shared counts.
    began_at: time.monotonic().
    counts_everywhere: True if it counts in every process from its beginning.
    cluster_id: of its environment's database; 0 if that is not known yet.
    """

    entry: int | None
    began_at: float
    counts_everywhere: bool
    cluster_id: int


class RunningCounts:
    """Counts of the running requests. Not thread-safe: the caller holds a lock.

    counts: of all processes. total: the number of requests that run in this process.
    """

    def __init__(self, counts: SharedCounts) -> None:
        self.counts = counts
        self.total = 0
        self._of_environment: Counter[int] = Counter()
        self._of_organization: Counter[int] = Counter()
        self._of_cluster: Counter[int] = Counter()
        # Organizations that have just run a request of more than SHORT_S.
        self._has_run_long = ExpiringSet(LONG_FOR_S)
        # Organizations whose next slot is reserved for another process.
        self._reserved = ExpiringSet(RESERVED_S)

    def take(self, scope: Scope) -> RunningSlot:
        """Add a running request."""
        now = time.monotonic()
        counts_everywhere = scope.organization_id in self._has_run_long
        counts_from = now - SHORT_S if counts_everywhere else now
        entry = self.counts.running.add(self.counts.row, scope.organization_id, counts_from)
        self.total += 1
        self._of_environment[scope.environment_pk] += 1
        self._of_organization[scope.organization_id] += 1
        cluster_id = PLACEMENT_CACHE.cluster_of(scope.environment_pk)
        self._of_cluster[cluster_id] += 1
        self.counts.served.put_first(self.counts.row, scope.organization_id, now)
        return RunningSlot(entry, now, counts_everywhere, cluster_id)

    def leave(self, scope: Scope, slot: RunningSlot) -> None:
        """Remove a request; reserve its slot for a process in which its organization waits."""
        self.total -= 1
        _decrement(self._of_environment, scope.environment_pk)
        _decrement(self._of_organization, scope.organization_id)
        _decrement(self._of_cluster, slot.cluster_id)
        self.counts.running.remove(slot.entry)
        was_long = time.monotonic() - slot.began_at >= SHORT_S
        if was_long:
            self._has_run_long.add(scope.organization_id)
        if was_long or slot.counts_everywhere:
            self._reserve_for_another(scope.organization_id)

    def _reserve_for_another(self, organization_id: int) -> None:
        # While no others are served, each process has its own slots for the organization.
        if self._are_others_served(organization_id) and self.counts.wake_another(organization_id):
            self._reserved.add(organization_id)

    def end_reservation(self, organization_id: int) -> None:
        """End a reservation: another process has given the organization's next slot to this one."""
        self._reserved.discard(organization_id)

    def is_fair(self, organization_id: int) -> bool:
        """True if the organization may take another of this process's free slots.

        An organization that runs nothing can always run one request while a slot is free.
        """
        own = self._of_organization.get(organization_id, 0)
        return is_fair(own, taken=self.total, of=settings.SQL.running)

    def leaves_others_slots(self, scope: Scope) -> bool:
        """True if the scope's cluster may take another of this process's free slots."""
        own = self._of_cluster.get(PLACEMENT_CACHE.cluster_of(scope.environment_pk), 0)
        return is_fair_among_clusters(own, taken=self.total, of=settings.SQL.running)

    def is_within_limits(self, scope: Scope) -> bool:
        """True if the organization and the environment are below their limits in this process."""
        limits = limits_of(scope)
        own = self._of_organization.get(scope.organization_id, 0)
        in_environment = self._of_environment.get(scope.environment_pk, 0)
        return own < limits.organization and in_environment < limits.environment

    def may_run(self, scope: Scope) -> bool:
        """True if one more request is within all limits of its organization and environment.

        While other organizations are served, ``beside_others`` limits the organization in all
        processes, because each of its requests takes processor time from the others. Slow requests
        do not count. But while the organization has slow ones here, all its requests in this
        process must stay below the larger of this limit and the one of an environment.
        """
        return self._is_below_limits(scope, self._counted(scope))

    def is_behind_slow(self, scope: Scope) -> bool:
        """True if only slow requests keep the scope's next request from running."""
        # A reservation ends within RESERVED_S, so a request may wait for it. The counts are read
        # once: a request in another process may end at any moment.
        counted = self._counted(scope)
        is_reserved = scope.organization_id in self._reserved
        return not is_reserved and not counted and not self._is_below_limits(scope, counted)

    def _is_below_limits(self, scope: Scope, counted: list[tuple[int, float]]) -> bool:
        if not self.is_within_limits(scope):
            return False
        limits = limits_of(scope)
        if limits.beside_others is None or not self._are_others_served(scope.organization_id):
            return True
        if scope.organization_id in self._reserved:
            return False
        own = self._of_organization.get(scope.organization_id, 0)
        is_beside_slow = own > sum(row == self.counts.row for row, _ in counted)
        share = max(limits.beside_others, limits.environment if is_beside_slow else 0)
        return len(counted) < limits.beside_others and own < share

    def too_many(self, organizations: Iterable[int]) -> set[int]:
        """Return the organizations at their limit beside others, in one pass over the table."""
        now = time.monotonic()
        served = self.counts.served.entries()
        if len({each for each, _, at in served if now - at < ACTIVE_S}) < 2:
            return set()
        running = self.counts.running.entries()
        counted = Counter(each for each, row, at in running if self._counts_here(row, now - at))
        return {each for each in organizations if counted.get(each, 0) >= beside_others()}

    def _counted(self, scope: Scope) -> list[tuple[int, float]]:
        """Return row and time of the organization's requests that count in this process."""
        now = time.monotonic()
        running = self.counts.running.of(scope.organization_id)
        return [(row, at) for row, at in running if self._counts_here(row, now - at)]

    def _counts_here(self, row: int, age_s: float) -> bool:
        """True unless the request is slow, or runs in another process and is still short."""
        return age_s < SLOW_S and (row == self.counts.row or age_s >= SHORT_S)

    def _are_others_served(self, organization_id: int) -> bool:
        return self.counts.served.has_another(organization_id, since=time.monotonic() - ACTIVE_S)


def is_fair(own: int, *, taken: int, of: int) -> bool:
    """True if an organization that holds ``own`` slots may take another one.

    The first requires one free slot; the second requires more than a quarter of all slots to be
    free; the third, more than half.
    """
    return own * max(of // 4, 1) < of - taken


def is_fair_among_clusters(own: int, *, taken: int, of: int) -> bool:
    """True if a cluster whose requests hold ``own`` slots may take another one.

    Where there are several, its requests hold at most as many as are free.
    """
    return not PLACEMENT_CACHE.has_several_clusters or own < of - taken


def limits_of(scope: Scope) -> AdmissionLimits:
    """Return the limits of a scope.

    An organization's own limit replaces all three: the same number for the organization and for
    each environment, and no other limit beside other organizations.
    """
    own = PLACEMENT_CACHE.statements(scope.environment_pk)
    if own is not None:
        return AdmissionLimits(own, own, None)
    shared = settings.SQL
    return AdmissionLimits(
        shared.running_per_organization,
        shared.running_per_environment,
        beside_others(),
    )


def beside_others() -> int:
    """Return the default of ``AdmissionLimits.beside_others``."""
    return settings.SQL.running_beside_others or max(1, settings.WEB_WORKERS // 2)


class ExpiringSet:
    """Organization ids that are kept for a fixed time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        # The end of each (time.monotonic()), earliest first.
        self._until: OrderedDict[int, float] = OrderedDict()

    def add(self, organization_id: int) -> None:
        """Keep an organization's id from now on."""
        now = time.monotonic()
        self._until[organization_id] = now + self._seconds
        self._until.move_to_end(organization_id)
        while next(iter(self._until.values())) <= now:
            self._until.popitem(last=False)

    def __contains__(self, organization_id: int) -> bool:
        return self._until.get(organization_id, 0.0) > time.monotonic()

    def discard(self, organization_id: int) -> None:
        """Remove an organization's id."""
        self._until.pop(organization_id, None)


def _decrement(counts: Counter[int], key: int) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]
