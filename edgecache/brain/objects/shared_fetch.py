"""One fetch from an origin, shared by all requests for the same name.

The bytes go to a growing file, from which each reader reads at its own pace; a reader that leaves
does not disturb the others. When the origin fails midway, all get the error and nothing is stored.
Of the quotas of those who wait for it, the first that allows the fetch is charged.

What is for one client only, or finds no room on the disk, is passed on instead and not kept: the
origin is read as fast as the slowest reader takes the bytes.

Without readers a fetch goes on if its body has at most SMALL_BYTES, or if more than half of it is
there; otherwise it reads nothing more, and ends unless a reader comes within ABANDON_S.
"""

import asyncio
import os
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import Final

import structlog

from common import tracing
from common.machine.reasons import reason
from edgecache.brain.core.errors import BrainError, NotKept, OriginFailed, StorageFull
from edgecache.brain.core.values import Name, ObjectVersion, Span, StagedFile
from edgecache.brain.disk.data_directory import READ_BYTES, DataDirectory, Receiver
from edgecache.brain.http_caching import caching_rules
from edgecache.brain.objects.cacheability import Cacheability, object_cacheability
from edgecache.brain.objects.directory_writer import DirectoryWriter
from edgecache.brain.origins.driver import PLAIN, Driver, OriginRequest, OriginResponse, version_at
from edgecache.protocol.ranges import RangeNotSatisfiable, requested
from edgecache.runtime.fair_shares import ShareKey, Shares
from edgecache.runtime.futures import retrieve

log = structlog.get_logger(__name__)

SMALL_BYTES: Final = 8 * 2**20
# Statuses that a request for a part has in common with one for the whole.
WHATEVER_THE_RANGE: Final = frozenset({200, 304, 404, 410})
# Readers have this long to come from the head to the body, and a client to try again before it.
ABANDON_S: Final = 5.0
# What is passed on is in memory up to here.
WINDOW_BYTES: Final = 2**17


class SharedPermit:
    """A permit of a pool that several clients share, in the quota of one of them."""

    def __init__(self) -> None:
        self._waiting: dict[ShareKey, asyncio.Task[None]] = {}
        self._granted: asyncio.Future[tuple[Shares, ShareKey]] = (
            asyncio.get_running_loop().create_future()
        )
        # The permit may not be needed any more.
        self._granted.add_done_callback(retrieve)

    def wait(self, shares: Shares, key: ShareKey) -> None:
        """Wait in one more quota, unless it is waited for already."""
        if key in self._waiting or self._granted.done():
            return
        if shares.try_take(key):
            self._granted.set_result((shares, key))
        else:
            self._waiting[key] = asyncio.create_task(self._wait(shares, key))

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """Hold the permit while the block runs. Raises the refusal of the last share."""
        try:
            shares, key = await asyncio.shield(self._granted)
        except asyncio.CancelledError:
            # Prevent a later grant; return a permit that was granted.
            if not self._granted.cancel() and self._granted.exception() is None:
                granted_by, granted_to = self._granted.result()
                granted_by.give_back(granted_to)
            raise
        finally:
            for task in self._waiting.values():
                task.cancel()
        try:
            yield
        finally:
            shares.give_back(key)

    async def _wait(self, shares: Shares, key: ShareKey) -> None:
        try:
            await shares.take(key)
        except Exception as exc:  # noqa: BLE001 - the fetch raises it
            del self._waiting[key]
            if not self._waiting and not self._granted.done():
                self._granted.set_exception(exc)
            return
        if self._granted.done():
            shares.give_back(key)
        else:
            self._granted.set_result((shares, key))


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """What to ask the origin for. S3 buckets use the defaults, the CDN sets all fields.

    stale: the version that a 304 confirms.
    replaced: the stored version; deleted if the origin's new response is not stored.
    above: the generation of the version that is known, and is to be replaced; only a newer one from
    another brain makes the fetch unnecessary.
    assess: decides about the response's headers.
    joins: True if a running fetch answers this request, too.
    client: the address of an anonymous client, which has its own share; '' for a signed request.
    opens_at_head: readers get the headers when they arrive, not with the body's first bytes.
    takes: True if a version that another brain has stored answers this request.
    find_variant: returns the request's variant by the responses that other brains have stored.
    """

    origin_request: OriginRequest = PLAIN
    stale: ObjectVersion | None = None
    replaced: ObjectVersion | None = None
    above: int = 0
    assess: Callable[[OriginResponse], Cacheability] = object_cacheability
    joins: Callable[["SharedFetch"], bool] = lambda fetch: fetch.cacheability.is_shared
    client: str = ""
    opens_at_head: bool = False
    takes: Callable[[ObjectVersion], bool] = lambda _found: True
    find_variant: Callable[[], Awaitable[str]] | None = None


class Reader:
    """A reader's place in a body. position: of the byte that it needs next."""

    def __init__(self, position: int) -> None:
        self.position = position


class SharedFetch:
    """One fetch. opened: resolves to the version once the origin's headers are there.

    is_passing: its bytes are passed on and not kept; no other reader can join.
    part: what it has of the body, if the origin was asked for a part and sent one.
    will_be_stored: its end is marked, so it is stored unless it breaks off or outgrows the disk.
    is_of_other_brain: another brain has fetched the version; this one has not asked the origin.
    may_be_kept_whole: the response of which it has a part may be stored, and is small.
    """

    def __init__(
        self,
        name: Name,
        request: FetchRequest,
        data_directory: DataDirectory,
        *,
        on_header: Callable[["SharedFetch"], None],
        on_failure: Callable[["SharedFetch", BrainError], None],
    ) -> None:
        """on_header, on_failure: called before any waiter resumes.

        on_header: also when the body turns out not to fit.
        """
        self.name, self.request = name, request
        self.cacheability: Cacheability = Cacheability()
        self.opened: asyncio.Future[ObjectVersion] = asyncio.get_running_loop().create_future()
        # Even if no waiter is left.
        self.opened.add_done_callback(retrieve)
        self.kept: ObjectVersion | None = None
        # False for a version that another brain stored.
        self.is_fetched = False
        self.failure: BrainError | None = None
        # The generation before the origin was asked, None until then.
        self.began: int | None = None
        self.task: asyncio.Task[None] | None = None
        # True while it waits for its turn to ask the origin.
        self.is_queued = True
        self.permit = SharedPermit()
        # Among the brains; ends early when there is nothing for them to wait for.
        self.has_lease = False
        self._on_header = on_header
        self._on_failure = on_failure
        self._data_directory = data_directory
        self._receiver: Receiver = data_directory.receive()
        self._file = -1
        self._readers: set[Reader] = set()
        # They wait for the head, or for the end.
        self._waiting = 0
        self._abandon_timer: asyncio.TimerHandle | None = None
        self._size = -1
        self._has_head = self._is_whole = self._is_over = False
        self.is_passing = self.may_be_kept_whole = False
        self.will_be_stored = self.is_of_other_brain = False
        self.part: Span | None = None
        # Bytes that came: first those in the file, then those of the window, which only has the
        # last ones.
        self._received = 0
        self._window = bytearray()
        # Replaced by the next one when it is set.
        self._progress = asyncio.Event()

    async def run(self, driver: Driver, writer: DirectoryWriter) -> None:
        """Fetch and store; errors go to the waiters, never to the caller."""
        with tracing.span("origin fetch", "client"):
            await self._run(driver, writer)

    async def _run(self, driver: Driver, writer: DirectoryWriter) -> None:
        try:
            request = self.request
            async with driver.get(self.name[1], request.origin_request) as response:
                self.cacheability = request.assess(response)
                self._take_head(response)
                keeps = self.cacheability.is_stored or response.status in caching_rules.TRANSIENT
                if request.replaced is not None and not keeps and self.part is None:
                    await writer.forget(request.replaced)
                if response.status == 304 and request.stale is not None:
                    self.complete(await self._confirmed(request.stale, writer))
                    return
                cacheability = self.cacheability
                found = version_at(
                    self.name, response, variant=cacheability.variant, http=cacheability.http
                )
                if request.origin_request.is_head:
                    self.opened.set_result(found)
                else:
                    await self._receive(response, found)
                is_complete = response.is_complete()
            staged = await self._finish()
            self._is_whole = True
            self._wake()
            if staged is not None and self.cacheability.is_stored and is_complete:
                self.kept = await writer.commit(staged, found, self.cacheability)
                # The commit has ended it.
                self.has_lease = self.has_lease and self.kept is None
                self.is_fetched = True
        except BrainError as exc:
            self.fail(exc)
        except OSError as exc:
            log.warning("fill_storage_failed", reason=reason(exc))
            self.fail(OriginFailed("The cache could not keep the object's bytes."))
        except asyncio.CancelledError:
            self.fail(OriginFailed("The fetch was given up."))
            raise
        finally:
            self._is_over = True
            # A stored file has its lasting name by now, and readers have it open.
            await self._receiver.discard()

    async def wait_for_version(self) -> ObjectVersion:
        """Wait for the origin's headers. Raises BrainError when the fetch fails."""
        patience_s = ABANDON_S
        try:
            with self._waits():
                # Shielded: a cancelled waiter must not cancel what the others wait for.
                return await asyncio.shield(self.opened)
        except BaseException:
            patience_s = 0.0 if self.is_queued else ABANDON_S
            raise
        finally:
            # The caller may want the body next.
            self._settle(patience_s)

    def serves(self, request: FetchRequest) -> bool:
        """True if a request may wait for this fetch, or read from it once the head is there.

        A range waits for a head, which may be that of the whole, and reads what comes soon.
        """
        wanted = dict(request.origin_request.ranged).get("range", "")
        if not self._has_head:
            return bool(wanted) or not self.request.origin_request.ranged
        if self.is_passing:
            return False
        if not wanted or self._size < 0:
            return True
        try:
            start, _ = requested(wanted, self._size) or (0, 0)
        except RangeNotSatisfiable:
            return True
        return start <= self._received + SMALL_BYTES

    def complete(self, found: ObjectVersion) -> None:
        """End without a body: the directory has this version."""
        self.kept = found
        self._is_whole = True
        if not self.opened.done():
            self.opened.set_result(found)
        self._wake()

    def fail(self, error: BrainError) -> None:
        """End with an error for all waiters, unless they have all bytes already."""
        if self._is_whole:
            log.warning("fill_not_kept", problem=error.code)
            return
        self.failure = error
        self._on_failure(self, error)
        if not self.opened.done():
            self.opened.set_exception(error)
        self._wake()

    def close(self) -> None:
        """End with an error, unless it has ended already."""
        if not self._is_whole and self.failure is None:
            self.fail(OriginFailed())

    async def wait_until_stored(self, timeout_s: float) -> None:
        """Wait while a complete response is being stored; return immediately for others."""
        is_storing = self._is_whole and not self._is_over and self.cacheability.is_stored
        if is_storing and self.task is not None:
            await asyncio.wait({self.task}, timeout=timeout_s)

    async def wait_until_whole(self) -> None:
        """Wait for the last byte; until then the fetch has a reader.

        Raises BrainError when the fetch fails, and where the body is passed on and not kept.
        """
        try:
            with self._waits():
                while not self._is_whole:
                    if self.failure is not None:
                        raise self.failure.copy()
                    if self.is_passing:
                        raise NotKept
                    await self._progress.wait()
        finally:
            self._settle(0.0 if self.is_passing else ABANDON_S)

    def final_version(self, found: ObjectVersion) -> ObjectVersion:
        """Return the stored version, or one with the size that is known now."""
        return self.kept or replace(found, size=self._received)

    async def body(self, span: Span | None) -> AsyncIterator[bytes]:
        """Yield a span, or everything, while it arrives.

        Raises OriginFailed, OriginTimeout where the origin fails before its end.
        """
        end = None if span is None else span.start + span.length
        reader = Reader(0 if span is None else span.start)
        self._readers.add(reader)
        self._stop_timer()
        self._wake()
        try:
            while end is None or reader.position < end:
                piece = await self._next(reader.position, end)
                if not piece:
                    break
                reader.position += len(piece)
                if self.is_passing:
                    # There is room for more.
                    self._wake()
                yield piece
        finally:
            self._readers.discard(reader)
            self._wake()
            self._settle(0.0 if self.is_passing else ABANDON_S)

    async def _next(self, position: int, end: int | None) -> bytes:
        """Return bytes from a position on as soon as there are some; b"" at the body's end."""
        while position >= self._received:
            if self.failure is not None:
                raise self.failure.copy()
            if self._is_whole:
                return b""
            await self._progress.wait()
        start = self._received - len(self._window)
        if position >= start:
            return bytes(self._window[position - start : None if end is None else end - start])
        if self._file < 0:
            raise OriginFailed("The cache does not keep the object's first bytes.")
        there = start if end is None else min(start, end)
        count = min(there - position, READ_BYTES)
        return await self._data_directory.run(os.pread, self._file, count, position)

    # --- the fetch's own steps --------------------------------------------------------------

    async def _confirmed(self, stale: ObjectVersion, writer: DirectoryWriter) -> ObjectVersion:
        """Return the version that a 304 confirms."""
        if self.cacheability.is_stored:
            return await writer.refresh(stale, self.cacheability)
        # The version was deleted, but the waiting requests may have it.
        return replace(stale, http=self.cacheability.http)

    def _take_head(self, response: OriginResponse) -> None:
        """Decide whether the body is kept, now that its length and what may be done are known."""
        self._has_head = True
        asked, status, part = self.request.origin_request, response.status, response.part
        if part is not None:
            is_small = response.size is not None and response.size <= SMALL_BYTES
            self.may_be_kept_whole = is_small and self.cacheability.is_stored
            self.part, self._received = part, part.start
        is_for_range = status not in WHATEVER_THE_RANGE if asked.ranged else status == 206
        may_be_kept = self.cacheability.is_stored or self.cacheability.is_shared
        has_room = self._receiver.has_room(response.size or 0)
        is_own = asked.is_head or is_for_range or part is not None
        if status != 304 and (is_own or not (may_be_kept and has_room)):
            self._pass_on()
        self.will_be_stored = self.cacheability.is_stored and response.is_complete()
        self._on_header(self)

    def _pass_on(self) -> None:
        """Keep no more of the body."""
        self.is_passing = True
        self.cacheability = replace(self.cacheability, is_stored=False, is_shared=False)

    async def _receive(self, response: OriginResponse, found: ObjectVersion) -> None:
        self._size = found.size
        end = found.size if self.part is None else self.part.start + self.part.length
        if self.request.opens_at_head:
            self.opened.set_result(found)
        if response.body is not None:
            async for chunk in response.body:
                # Before readers can take it: what they have then cannot look complete.
                self._check_length(end, coming=len(chunk))
                await self._wait_for_readers()
                if self.is_passing or not await self._write(chunk):
                    await self._make_room(len(chunk))
                    self._window += chunk
                self._received += len(chunk)
                if not self.opened.done():
                    self.opened.set_result(found)
                self._wake()
        self._check_length(end, is_last=True)
        if not self.opened.done():
            self.opened.set_result(found)

    async def _write(self, chunk: bytes) -> bool:
        """Write a piece to the file; False if there is no room for it."""
        try:
            await self._receiver.write(chunk)
            await self._receiver.flush()
        except StorageFull as full:
            log.warning("fill_passed_on", problem=full.pool, size=self._size)
            self._pass_on()
            self._on_header(self)
            return False
        if self._file < 0:
            self._open_file()
        return True

    async def _finish(self) -> StagedFile | None:
        """Return the complete body, None if it is not kept. Raises OSError."""
        try:
            return None if self.is_passing else await self._receiver.finish()
        except StorageFull:
            # Readers have the file open.
            self.cacheability = replace(self.cacheability, is_stored=False)
            return None

    async def _wait_for_readers(self) -> None:
        """Read no further for a reader that may not come."""
        while not (self._readers or self._waiting or self._goes_on()):
            self._settle(ABANDON_S)
            await self._progress.wait()

    async def _make_room(self, size: int) -> None:
        """Wait until the slowest reader has taken what must leave the window."""
        while self._window and len(self._window) + size > WINDOW_BYTES:
            start = self._received - len(self._window)
            slowest = min((reader.position for reader in self._readers), default=start)
            if slowest > start:
                del self._window[: slowest - start]
                await self._release_file()
            else:
                await self._progress.wait()

    async def _release_file(self) -> None:
        """Give back the disk's room: all readers have read the beginning."""
        if self._file >= 0:
            self._file = -1
            self._close_file()
            await self._receiver.discard()

    def _check_length(self, end: int, *, coming: int = 0, is_last: bool = False) -> None:
        came = self._received + coming
        if end >= 0 and (came > end or (is_last and came != end)):
            raise OriginFailed(
                "The origin sent another number of bytes than it announced.", cause="length-wrong"
            )

    # --- readers ---------------------------------------------------------------------------

    def _wake(self) -> None:
        self._progress.set()
        self._progress = asyncio.Event()

    def _open_file(self) -> None:
        # Opened before the file is renamed; closed when nothing refers to this fetch.
        self._file = os.open(self._receiver.path, os.O_RDONLY | os.O_CLOEXEC)
        self._close_file = weakref.finalize(self, os.close, self._file)

    @contextmanager
    def _waits(self) -> Iterator[None]:
        self._waiting += 1
        self._stop_timer()
        self._wake()
        try:
            yield
        finally:
            self._waiting -= 1

    def _goes_on(self) -> bool:
        """True if the fetch is finished without readers."""
        if not self._has_head or not self.cacheability.is_stored:
            return False
        is_small = max(self._size, self._received) <= SMALL_BYTES
        return is_small or self._received * 2 > self._size >= 0

    def _settle(self, patience_s: float) -> None:
        """Without readers, end the fetch unless it goes on. patience_s: one may come for this long.

        In that time it reads nothing.
        """
        is_used = bool(self._readers) or self._waiting > 0 or self._goes_on()
        is_ending = self._is_over or self._is_whole or self.failure is not None
        if is_used or is_ending or self._abandon_timer is not None:
            return
        if patience_s:
            loop = asyncio.get_running_loop()
            self._abandon_timer = loop.call_later(patience_s, self._abandon)
        else:
            self._cancel()

    def _abandon(self) -> None:
        self._abandon_timer = None
        self._settle(0.0)

    def _stop_timer(self) -> None:
        if self._abandon_timer is not None:
            self._abandon_timer.cancel()
            self._abandon_timer = None

    def _cancel(self) -> None:
        if self.task is not None and not self._is_over and not self._is_whole:
            # Before the task has noticed, no other reader may share it.
            self.fail(OriginFailed("The fetch was given up."))
            self.task.cancel()
