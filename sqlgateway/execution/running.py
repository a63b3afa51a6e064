"""What SQL requests run: in this process, and of each organization in all processes."""

import time
from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from django.conf import settings

from platform_site.lib.principals import Scope
from sqlgateway.execution.limits import ExpiringSet, beside_others, is_fair, limits_of
from sqlgateway.execution.shared_counts import SharedCounts

# What has run for so long may only be waiting for something.
SLOW_S: Final = 1.0
# Requests of an organization that ran for less lately count in their own process alone, until they
# have run for so long: on a busy machine it takes some milliseconds to be woken by another process,
# and as long for a short statement to have its turns of the processor.
SHORT_S: Final = 0.02
LATELY_S: Final = 1.0
# How long a process leaves an organization's next slot to another in which it waits as well.
LEFT_S: Final = 0.02
# An organization that began none for so long does not need the processors now.
ACTIVE_S: Final = 1.0


class Slot(NamedTuple):
    """A request that runs. entry: in the shared counts. began_at: time.monotonic().

    is_counted: in all processes from its beginning.
    """

    entry: int | None
    began_at: float
    is_counted: bool


class Running:
    """The requests that run, and how many more may. Not safe for threads: its caller holds a lock.

    counts: those of all processes. total: what runs in this one.
    """

    def __init__(self, counts: SharedCounts) -> None:
        self.counts = counts
        self.total = 0
        self._of_environment: Counter[int] = Counter()
        self._of_organization: Counter[int] = Counter()
        # Organizations that ran a request lately which was not short.
        self._long_lately = ExpiringSet(LATELY_S)
        # Organizations whose next slot is left to another process.
        self._left_to_another = ExpiringSet(LEFT_S)

    def take(self, scope: Scope) -> Slot:
        """Count one more."""
        now = time.monotonic()
        is_counted = scope.organization_id in self._long_lately
        counts_from = now - SHORT_S if is_counted else now
        entry = self.counts.running.add(self.counts.row, scope.organization_id, counts_from)
        self.total += 1
        self._of_environment[scope.environment_pk] += 1
        self._of_organization[scope.organization_id] += 1
        self.counts.served.put_first(self.counts.row, scope.organization_id, now)
        return Slot(entry, now, is_counted)

    def leave(self, scope: Scope, slot: Slot) -> None:
        """Count one less; leave its slot to another process in which its organization waits."""
        self.total -= 1
        _decrement(self._of_environment, scope.environment_pk)
        _decrement(self._of_organization, scope.organization_id)
        self.counts.running.remove(slot.entry)
        was_long = time.monotonic() - slot.began_at >= SHORT_S
        if was_long:
            self._long_lately.add(scope.organization_id)
        if was_long or slot.is_counted:
            self._leave_to_another(scope.organization_id)

    def _leave_to_another(self, organization_id: int) -> None:
        # While no others are served each process has slots of its own for it.
        if self._are_others_served(organization_id) and self.counts.wake_another(organization_id):
            self._left_to_another.add(organization_id)

    def take_back(self, organization_id: int) -> None:
        """Let this process take an organization's next slot again: another has left it to this."""
        self._left_to_another.discard(organization_id)

    def is_fair(self, organization_id: int) -> bool:
        """True if what all run in this process leaves the organization one more.

        Organizations that run all they may never keep out one that runs nothing.
        """
        own = self._of_organization.get(organization_id, 0)
        return is_fair(own, taken=self.total, of=settings.SQL.running)

    def is_within_limits(self, scope: Scope) -> bool:
        """True if the organization and the environment run fewer in this process than they may."""
        limits = limits_of(scope)
        own = self._of_organization.get(scope.organization_id, 0)
        in_environment = self._of_environment.get(scope.environment_pk, 0)
        return own < limits.organization and in_environment < limits.environment

    def may_run(self, scope: Scope) -> bool:
        """True if what the organization and the environment run leaves them one more.

        While others are served, ``beside_others`` limits the organization in all processes, as each
        further request takes processor time from theirs. Slow ones do not count, but beside them
        this process runs no more than one environment may.
        """
        return self._leave_one_more(scope, self._counted(scope))

    def is_behind_slow(self, scope: Scope) -> bool:
        """True if the scope's next request would wait for slow ones alone."""
        # What is left to another process for a moment is no slow one. Read once: another process
        # may end its request at any moment.
        counted = self._counted(scope)
        is_left = scope.organization_id in self._left_to_another
        return not is_left and not counted and not self._leave_one_more(scope, counted)

    def _leave_one_more(self, scope: Scope, counted: list[tuple[int, float]]) -> bool:
        if not self.is_within_limits(scope):
            return False
        limits = limits_of(scope)
        if limits.beside_others is None or not self._are_others_served(scope.organization_id):
            return True
        if scope.organization_id in self._left_to_another:
            return False
        own = self._of_organization.get(scope.organization_id, 0)
        is_beside_slow = own > sum(row == self.counts.row for row, _ in counted)
        share = max(limits.beside_others, limits.environment if is_beside_slow else 0)
        return len(counted) < limits.beside_others and own < share

    def too_many(self, organizations: Iterable[int]) -> set[int]:
        """Return those that run all they may beside others; one pass over the table finds them."""
        now = time.monotonic()
        served = self.counts.served.entries()
        if len({each for each, _, at in served if now - at < ACTIVE_S}) < 2:
            return set()
        running = self.counts.running.entries()
        counted = Counter(each for each, row, at in running if self._is_counted(row, now - at))
        return {each for each in organizations if counted.get(each, 0) >= beside_others()}

    def _counted(self, scope: Scope) -> list[tuple[int, float]]:
        """Return the organization's requests that count here, as the shared counts do."""
        now = time.monotonic()
        running = self.counts.running.of(scope.organization_id)
        return [(row, at) for row, at in running if self._is_counted(row, now - at)]

    def _is_counted(self, row: int, age_s: float) -> bool:
        """True unless the request is slow, or another process's and still short."""
        return age_s < SLOW_S and (row == self.counts.row or age_s >= SHORT_S)

    def _are_others_served(self, organization_id: int) -> bool:
        return self.counts.served.has_another(organization_id, since=time.monotonic() - ACTIVE_S)


def _decrement(counts: Counter[int], key: int) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]
