"""Group commit: PUTs that wait together are written together.

A group has at most one write of each key, and writes of different tenants in turn. One whose lock
is taken is written alone, so that a purge of one tenant does not delay the writes of the others.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import Final

import psycopg

from edgecache.brain.core.background import BackgroundTasks
from edgecache.brain.core.errors import Overloaded
from edgecache.brain.core.share_key import use_share_of_bucket, use_share_of_platform
from edgecache.brain.core.values import (
    BucketInfo,
    Conditions,
    Name,
    ObjectVersion,
    StagedFile,
    WrittenFields,
)
from edgecache.brain.directory.versions import Directory
from edgecache.brain.disk.buffers import BufferedBody
from edgecache.brain.disk.durable_bytes import DurableBytes
from edgecache.brain.disk.segments import JOURNALED_BYTES
from edgecache.brain.objects.stored_writes import Outcomes, Write, write_all
from edgecache.brain.stores.stored_blobs import NewBlob
from edgecache.runtime.fair_shares import Shares
from edgecache.runtime.futures import retrieve

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

# Writes that wait for a lock, each with its own connection. One organization gets three.
ALONE: Final = 4
# More than there can be: a write that has begun is not refused.


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


class GroupCommit:
    """This brain's writes to the built-in origin."""

    def __init__(
        self,
        directory: Directory,
        store: DurableBytes,
        *,
        on_stored: Callable[[BucketInfo, ObjectVersion], None],
    ) -> None:
        """on_stored: called with each version that was committed."""
        self._directory = directory
        self._store = store
        self._on_stored = on_stored
        # Small bodies do not wait for large ones, whose groups take longer.
        self._queues = {is_small: GroupQueue(self._start) for is_small in (True, False)}
        self._groups = 0
        self._busy: set[Name] = set()
        self._is_starting = False
        # For ``finish``.
        self._started = asyncio.Event()
        self._alone = Shares(ALONE, refusal=Overloaded, wait_s=None)
        self._tasks = BackgroundTasks()

    async def put(
        self,
        bucket: BucketInfo,
        key: str,
        body: StagedFile | BufferedBody,
        fields: WrittenFields,
        conditions: Conditions,
        *,
        stored: NewBlob | None = None,
    ) -> ObjectVersion:
        """Write an object: its bytes, its row and the directory's row, or none of them.

        stored: a store has the bytes. The body is consumed. Continues when the caller is cancelled.
        Raises PreconditionFailed, OriginMissing (if_match), UploadMissing, NoSuchBucket,
        StorageFull, StoreUnavailable, DatabaseUnavailable.
        """
        loop = asyncio.get_running_loop()
        write = Write(bucket, key, body, fields, conditions, loop.create_future(), stored)
        # Retrieved here, because the caller may be gone.
        write.outcome.add_done_callback(retrieve)
        self._queue_for(write).add(write)
        if not self._is_starting:
            # Writes that arrive in this iteration of the loop form one group.
            self._is_starting = True
            loop.call_soon(self._start)
        return await asyncio.shield(write.outcome)

    async def finish(self) -> None:
        """Wait until everything is written."""
        while self._is_starting or any(self._queues.values()) or len(self._tasks):
            if not len(self._tasks):
                # A group gathers: what ends that starts it.
                self._started.clear()
                await self._started.wait()
            await self._tasks.finish()

    def _queue_for(self, write: Write) -> GroupQueue:
        # Writes of a key stay in the order in which they came.
        same = (queue for queue in self._queues.values() if queue.has(write))
        return next(same, self._queues[write.body.manifest.size <= JOURNALED_BYTES])

    def _start(self) -> None:
        self._is_starting = False
        self._started.set()
        for queue in self._queues.values():
            while group := queue.begin(self._busy, has_spare=self._groups < GROUPS):
                self._groups += 1
                self._busy.update(write.name for write in group)
                self._tasks.add(self._write_group(queue, group))

    async def _write_group(self, queue: GroupQueue, group: Sequence[Write]) -> None:
        # The request that started it may belong to an organization that has used its share.
        use_share_of_platform()
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        try:
            left = await self._try_group(group)
        finally:
            self._groups -= 1
            queue.end(len(group), loop.time() - began_at)
        for write in left:
            self._tasks.add(self._write_alone(write))
        self._end(write for write in group if write not in left)

    async def _try_group(self, group: Sequence[Write]) -> Sequence[Write]:
        """Write a group; return the writes that must go on alone."""
        try:
            ready = await self._write_files(group)
            return (await self._commit(ready, wait_for_locks=False)).contended if ready else ()
        except psycopg.Error:
            # One of them is wrong; it must not make the others fail.
            return [write for write in group if not write.outcome.done()]
        except Exception as exc:  # noqa: BLE001 - each of them raises it
            _fail(group, exc)
            return ()

    async def _write_alone(self, write: Write) -> None:
        # These use the bucket's own connections, because others would wait for its locks too.
        share_key = use_share_of_bucket(write.bucket)
        try:
            async with self._alone.permit(share_key[:1]):
                await self._commit([write], wait_for_locks=True)
        except Exception as exc:  # noqa: BLE001 - the caller raises it
            _fail([write], exc)
        self._end([write])

    async def _write_files(self, group: Sequence[Write]) -> list[Write]:
        """Write large bodies that are in memory; return the writes that can continue.

        Small ones are written in the transaction, if the journal has room. A body in a store needs
        no file except a copy for the workers, which may be lost.
        """
        small = [write for write in group if write.is_journaled]
        bodies = [write.body for write in small if isinstance(write.body, BufferedBody)]
        if bodies and not self._store.has_room(bodies):
            small = []
        for is_durable in (True, False):
            writes = [
                write
                for write in group
                if (write.stored is None) is is_durable and write not in small
            ]
            results = await self._store.stage(
                [write.body for write in writes], is_durable=is_durable
            )
            for write, result in zip(writes, results, strict=True):
                if not isinstance(result, Exception):
                    write.staged = result
                elif is_durable:
                    _fail([write], result)
        return [write for write in group if not write.outcome.done()]

    async def _commit(self, writes: Sequence[Write], *, wait_for_locks: bool) -> Outcomes:
        """Run the transaction, and hand out what became of the writes."""
        with ExitStack() as stack:
            watches = {
                write: stack.enter_context(self._directory.watch(write.name)) for write in writes
            }
            async with self._directory.coherence.transaction(is_pipelined=True) as change:
                outcomes = await write_all(
                    change, self._store, writes, wait_for_locks=wait_for_locks
                )
            for write, found in outcomes.committed.items():
                self._directory.remember(found, watches[write])
                write.outcome.set_result(found)
                self._on_stored(write.bucket, found)
        for write, failure in outcomes.failed.items():
            _fail([write], failure)
        if outcomes.parts:
            self._tasks.add(self._store.drop_parts(outcomes.parts))
        return outcomes

    def _end(self, writes: Iterable[Write]) -> None:
        """Let go of the bodies and the keys, and begin with what waited for them."""
        leftovers: list[StagedFile] = []
        for write in writes:
            self._busy.discard(write.name)
            if isinstance(write.body, BufferedBody):
                write.body.release()
            elif write.staged is None:
                # It failed before it came to the files.
                leftovers.append(write.body)
            if write.staged is not None and not write.is_placed:
                leftovers.append(write.staged)
        for staged in leftovers:
            self._tasks.add(self._store.discard(staged))
        self._start()


def _fail(writes: Iterable[Write], failure: Exception) -> None:
    for write in writes:
        if not write.outcome.done():
            write.outcome.set_exception(failure)
