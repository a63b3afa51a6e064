"""One fetch from an origin, shared by all requests for the same name.

The bytes go to a growing file, from which each reader reads at its own pace; a reader that leaves
does not disturb the others. When the origin fails midway, all get the error and nothing is stored.
Of the quotas of those who wait for it, the first that allows the fetch is charged.
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
from edgecache.brain.core.errors import BrainError, OriginFailed
from edgecache.brain.core.values import Name, ObjectVersion, Span
from edgecache.brain.disk.data_directory import READ_BYTES, DataDirectory, Receiver
from edgecache.brain.http_caching import caching_rules
from edgecache.brain.objects.cacheability import Cacheability, object_cacheability
from edgecache.brain.objects.directory_writer import DirectoryWriter
from edgecache.brain.origins.driver import PLAIN, Driver, OriginRequest, OriginResponse, version_at
from edgecache.runtime.fair_shares import ShareKey, Shares
from edgecache.runtime.futures import retrieve

log = structlog.get_logger(__name__)

# A fetch without readers is cancelled after a while, which lets a client try again. If it is to be
# stored and fewer bytes than this are missing, it may continue for longer.
ABANDON_BYTES: Final = 8 * 2**20
ABANDON_S: Final = 5.0
FINISH_S: Final = 30.0


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


class SharedFetch:
    """One fetch. opened: resolves to the version once the origin's headers are there."""

    def __init__(
        self,
        name: Name,
        request: FetchRequest,
        data_directory: DataDirectory,
        *,
        on_header: Callable[["SharedFetch"], None],
        on_failure: Callable[["SharedFetch", BrainError], None],
    ) -> None:
        """on_header, on_failure: called before any waiter resumes."""
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
        self._on_header = on_header
        self._on_failure = on_failure
        self._data_directory = data_directory
        self._receiver: Receiver = data_directory.receive()
        self._file = -1
        self._readers = 0
        self._abandon_timer: asyncio.TimerHandle | None = None
        self._size = -1
        self._is_whole = self._is_over = False
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
                self._on_header(self)
                keeps = self.cacheability.is_stored or response.status in caching_rules.TRANSIENT
                if request.replaced is not None and not keeps:
                    await writer.forget(request.replaced)
                if response.status == 304 and request.stale is not None:
                    self.complete(await self._confirmed(request.stale, writer))
                    return
                cacheability = self.cacheability
                found = version_at(
                    self.name, response, variant=cacheability.variant, http=cacheability.http
                )
                await self._receive(response, found)
                is_complete = response.is_complete()
            staged = await self._receiver.finish()
            self._is_whole = True
            self._wake()
            if self.cacheability.is_stored and is_complete:
                self.kept = await writer.commit(staged, found, self.cacheability)
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
        self._add_reader()
        try:
            # Shielded: a cancelled waiter must not cancel what the others wait for.
            found = await asyncio.shield(self.opened)
        except BaseException:
            self._remove_reader(0.0 if self.is_queued else ABANDON_S)
            raise
        # The caller may want the body next.
        self._remove_reader(ABANDON_S)
        return found

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
        """Wait for the last byte. Raises BrainError when the fetch fails."""
        with self._reading():
            while not self._is_whole:
                if self.failure is not None:
                    raise self.failure.copy()
                await self._progress.wait()

    def final_version(self, found: ObjectVersion) -> ObjectVersion:
        """Return the stored version, or one with the size that is known now."""
        return self.kept or replace(found, size=self._receiver.written)

    async def body(self, span: Span | None) -> AsyncIterator[bytes]:
        """Yield a span, or everything, while it arrives.

        Raises OriginFailed, OriginTimeout where the origin fails before its end.
        """
        position = 0 if span is None else span.start
        end = None if span is None else span.start + span.length
        with self._reading():
            while end is None or position < end:
                ready = self._receiver.written - position
                if ready > 0:
                    limit = ready if end is None else min(ready, end - position)
                    piece = await self._data_directory.run(
                        os.pread, self._file, min(limit, READ_BYTES), position
                    )
                    position += len(piece)
                    yield piece
                elif self.failure is not None:
                    raise self.failure.copy()
                elif self._is_whole:
                    break
                else:
                    await self._progress.wait()

    # --- the fetch's own steps --------------------------------------------------------------

    async def _confirmed(self, stale: ObjectVersion, writer: DirectoryWriter) -> ObjectVersion:
        """Return the version that a 304 confirms."""
        if self.cacheability.is_stored:
            return await writer.refresh(stale, self.cacheability)
        # The version was deleted, but the waiting requests may have it.
        return replace(stale, http=self.cacheability.http)

    async def _receive(self, response: OriginResponse, found: ObjectVersion) -> None:
        self._size = found.size
        if self.request.opens_at_head:
            self.opened.set_result(found)
        if response.body is not None:
            async for chunk in response.body:
                # Before readers can take it: what they have then cannot look complete.
                self._check_length(found.size, coming=len(chunk))
                await self._receiver.write(chunk)
                await self._receiver.flush()
                if self._file < 0:
                    self._open_file()
                if not self.opened.done():
                    self.opened.set_result(found)
                self._wake()
        self._check_length(found.size, is_last=True)
        if not self.opened.done():
            self.opened.set_result(found)

    def _check_length(self, size: int, *, coming: int = 0, is_last: bool = False) -> None:
        came = self._receiver.written + coming
        if size >= 0 and (came > size or (is_last and came != size)):
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
        weakref.finalize(self, os.close, self._file)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        self._add_reader()
        try:
            yield
        finally:
            is_of_use = not self.opened.done() or self.cacheability.is_stored
            self._remove_reader(ABANDON_S if is_of_use else 0.0)

    def _add_reader(self) -> None:
        self._readers += 1
        if self._abandon_timer is not None:
            self._abandon_timer.cancel()
            self._abandon_timer = None

    def _remove_reader(self, patience_s: float) -> None:
        """Count a reader out. patience_s: how long the fetch continues without readers."""
        self._readers -= 1
        if not self._readers:
            self._set_abandon_timer(patience_s, self._abandon)

    def _set_abandon_timer(self, delay_s: float, act: Callable[[], None]) -> None:
        if not self._is_over and not self._is_whole and self.failure is None:
            self._abandon_timer = asyncio.get_running_loop().call_later(delay_s, act)

    def _abandon(self) -> None:
        is_short = 0 <= self._size <= self._receiver.written + ABANDON_BYTES
        if self.opened.done() and self.cacheability.is_stored and is_short:
            self._set_abandon_timer(FINISH_S, self._cancel)
        else:
            self._cancel()

    def _cancel(self) -> None:
        if self.task is not None and not self._is_over and not self._is_whole:
            # Before the task has noticed, no other reader may share it.
            self.fail(OriginFailed("The fetch was given up."))
            self.task.cancel()
