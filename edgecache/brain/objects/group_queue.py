"""Queues of writes that are written in groups: which is next, and when the next group begins."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final

from edgecache.brain.directory.index import Name
from edgecache.brain.disk.buffers import BufferedBody
from edgecache.brain.objects.stored_writes import Write

# While one group waits for the disk another one may use the database, if this many writes wait: a
# group costs about the same for one write as for many. A limit of all queues: with one more group
# of another queue, they leave one of four connections to the database.
GROUPS: Final = 2
WORTH_ANOTHER: Final = 16
# ... or if it takes this long, for another transaction may have what it waits for.
SLOW_S: Final = 0.1
# How long a group waits for the clients of the last one: at most this share of its duration.
GATHER_SHARE: Final = 0.5
GATHER_S: Final = 0.01
# The locks that one transaction may take, see ``commits.KEYS_LOCKED``.
GROUP_WRITES: Final = 64
# So that large bodies are not held up by too many others.
GROUP_BYTES: Final = 8 * 2**20


class GroupQueue:
    """Writes that wait for a group, by organization and name, in the order of their arrival.

    While one group is written the next one collects, so groups grow with the load. Clients that
    write one object after another send their next ones when a group ends. The next group therefore
    waits a moment for as many writes as the last one had; otherwise two halves of the clients would
    alternate, each with its own transaction. A single client never waits.
    """

    def __init__(self, on_due: Callable[[], None]) -> None:
        """on_due: called when a group may begin that could not before."""
        self._on_due = on_due
        self._groups = 0
        # How many writes the next group waits for. The timers that end these states set flags,
        # because they may fire a little early by the loop's clock, and only once.
        self._expected = 0
        self._is_gathering = False
        self._is_slow = False
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._by_organization: OrderedDict[int, OrderedDict[Name, deque[Write]]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, write: Write) -> None:
        """Queue a write after the others of its organization and key."""
        organization_id = write.bucket.tenant.organization_id
        by_name = self._by_organization.setdefault(organization_id, OrderedDict())
        by_name.setdefault(write.name, deque()).append(write)
        self._count += 1

    def has(self, write: Write) -> bool:
        """True if a write of the same key waits."""
        return write.name in self._by_organization.get(write.bucket.tenant.organization_id, ())

    def begin(self, busy: set[Name], *, has_spare: bool) -> list[Write]:
        """Return the next group, empty if none may begin: see ``end``.

        It has one write of each organization in turn, none of a busy name. has_spare: the queue may
        have a group beside one that is being written.
        """
        group = self._take(busy) if self._may_begin(has_spare=has_spare) else []
        if group:
            self._groups += 1
            self._is_slow = False
            self._set_timer("slow", SLOW_S, self._note_slow)
        return group

    def end(self, writes: int, took_s: float) -> None:
        """Note that a group with this many writes has ended."""
        self._groups -= 1
        self._expected = min(writes + len(self), GROUP_WRITES)
        self._is_gathering = True
        gather_s = min(GATHER_S, GATHER_SHARE * took_s)
        self._set_timer("gathering", gather_s, self._stop_gathering)

    def _may_begin(self, *, has_spare: bool) -> bool:
        if not self._groups:
            return len(self) >= self._expected or not self._is_gathering
        if not has_spare:
            return False
        return len(self) >= WORTH_ANOTHER or self._is_slow

    def _note_slow(self) -> None:
        self._is_slow = True
        self._on_due()

    def _stop_gathering(self) -> None:
        self._is_gathering = False
        self._on_due()

    def _set_timer(self, name: str, delay_s: float, act: Callable[[], None]) -> None:
        """Act after a while, unless the timer of this name is set again."""
        if name in self._timers:
            self._timers[name].cancel()
        self._timers[name] = asyncio.get_running_loop().call_later(delay_s, act)

    def _take(self, busy: set[Name]) -> list[Write]:
        group: list[Write] = []
        taken: set[Name] = set()
        size = 0
        turns = deque(self._by_organization)
        while turns and len(group) < GROUP_WRITES and size < GROUP_BYTES:
            organization_id = turns.popleft()
            write = self._next(organization_id, busy, taken)
            if write is None:
                continue
            group.append(write)
            taken.add(write.name)
            if isinstance(write.body, BufferedBody):
                size += len(write.body.data)
            if organization_id in self._by_organization:
                # Behind the others, in this group and in the next one.
                self._by_organization.move_to_end(organization_id)
                turns.append(organization_id)
        return group

    def _next(self, organization_id: int, busy: set[Name], taken: set[Name]) -> Write | None:
        by_name = self._by_organization[organization_id]
        # At most as many names are skipped as are being written.
        name = next((name for name in by_name if name not in busy and name not in taken), None)
        if name is None:
            return None
        writes = by_name[name]
        write = writes.popleft()
        self._count -= 1
        if writes:
            by_name.move_to_end(name)
        else:
            del by_name[name]
        if not by_name:
            del self._by_organization[organization_id]
        return write
