"""One fetch from an origin, for everyone who asks for it meanwhile.

Its bytes go to a growing file; whoever waits reads from there at a pace of his own. Nobody's
leaving hurts the others. When the origin fails midway, everyone gets the error and nothing is kept.
"""

import asyncio
import os
import time
import weakref
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

import structlog

from edgecache.brain.cdn import rules
from edgecache.brain.delivery.delivery import Span
from edgecache.brain.directory.index import Name
from edgecache.brain.errors import BrainError, OriginFailed
from edgecache.brain.origins.driver import PLAIN, Driver, OriginRequest, OriginResponse, version_at
from edgecache.brain.storage.staging import READ_BYTES, Receiver, Staging
from edgecache.brain.values import ObjectVersion, StagedFile

log = structlog.get_logger(__name__)

# Nobody waits, and more than this is still to come: it is not worth the traffic.
ABANDON_BYTES: Final = 8 * 2**20
ABANDON_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Cacheability:
    """What may be done with an origin's answer.

    is_stored: the directory may keep it, under this variant. is_shared: who else waits may have it.
    http: what RFC 9111 needs to know of it later.
    """

    is_stored: bool = True
    is_shared: bool = True
    variant: str = ""
    http: Mapping[str, Any] = field(default_factory=dict)


def object_cacheability(response: OriginResponse) -> Cacheability:
    """Judge an answer for a reader who asks for an object, not for a URL.

    What an HTTP origin says of it is kept with it: pull mode may find it.
    """
    if not response.raw:
        return Cacheability()
    now = time.time()
    kept = rules.judge(response.raw, asked_at=now, answered_at=now)
    if kept is None:
        return Cacheability(is_stored=False, is_shared=False)
    return Cacheability(is_shared=not kept.vary, http=kept.as_json())


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """How to ask the origin. S3 buckets use the defaults; pull mode says more.

    stale: the version that a 304 confirms. above: a generation; a version above it that another
    brain has brought meanwhile spares the fetch. judge: decides, once the origin's header has come.
    joins: decides whether a fetch that is under way will do, for all that others may have it.
    """

    origin_request: OriginRequest = PLAIN
    stale: ObjectVersion | None = None
    above: int = 0
    assess: Callable[[OriginResponse], Cacheability] = object_cacheability
    joins: Callable[["SharedFetch"], bool] = lambda _flight: True


class DirectoryWriter(Protocol):
    """Where the outcome goes."""

    async def commit(
        self, staged: StagedFile, found: ObjectVersion, cacheability: Cacheability
    ) -> ObjectVersion | None:
        """Keep a body: the version that the directory now has, None where it may not have it."""
        ...

    async def refresh(self, stale: ObjectVersion, cacheability: Cacheability) -> ObjectVersion:
        """Keep a version that a 304 confirmed."""
        ...


class SharedFetch:
    """One fetch. ``opened`` gives the version as soon as the origin's header has come."""

    def __init__(self, name: Name, request: FetchRequest, staging: Staging) -> None:
        self.name = name
        self.request = request
        self.cacheability = Cacheability()
        self.opened: asyncio.Future[ObjectVersion] = asyncio.get_running_loop().create_future()
        # Whoever waited may be gone when it fails.
        self.opened.add_done_callback(lambda future: future.cancelled() or future.exception())
        self.kept: ObjectVersion | None = None
        # As opposed to one that another brain brought.
        self.is_fetched = False
        self.failure: BrainError | None = None
        # Told of these before anyone who waits is.
        self.on_header: Callable[[], None] = lambda: None
        self.on_failure: Callable[[BrainError], None] = lambda _error: None
        # The generation that it began after, None before it asks the origin.
        self.began: int | None = None
        self.task: asyncio.Task[None] | None = None
        self._staging = staging
        self._receiver: Receiver = staging.receive()
        self._file = -1
        self._readers = 0
        self._leaving: asyncio.TimerHandle | None = None
        self._size = -1
        self._is_whole = False
        self._is_over = False
        self._waiters: list[asyncio.Future[None]] = []

    async def fetch(self, driver: Driver, keeper: DirectoryWriter) -> None:
        """Carry it out; what goes wrong goes to the waiters, never to the caller."""
        try:
            request = self.request
            async with driver.get(self.name[1], request.origin_request) as response:
                self.cacheability = request.assess(response)
                self.on_header()
                if response.status == 304 and request.stale is not None:
                    self.complete(await keeper.refresh(request.stale, self.cacheability))
                    return
                cacheability = self.cacheability
                found = version_at(
                    self.name, response, variant=cacheability.variant, http=cacheability.http
                )
                await self._receive(response, found)
            staged = await self._receiver.finish()
            self._is_whole = True
            self._wake()
            if self.cacheability.is_stored and response.is_framed:
                self.kept = await keeper.commit(staged, found, self.cacheability)
                self.is_fetched = True
        except BrainError as exc:
            self.fail(exc)
        except OSError as exc:
            log.warning("fill_storage_failed", kind=type(exc).__name__, errno=exc.errno)
            self.fail(OriginFailed("The cache could not keep the object's bytes."))
        except asyncio.CancelledError:
            self.fail(OriginFailed("The fetch was given up."))
            raise
        finally:
            self._is_over = True
            # Where it was kept it has another name by now; who reads has it open.
            await self._receiver.discard()

    async def wait_for_version(self) -> ObjectVersion:
        """Wait for the version.

        Raises what the origin's failing raises.
        """
        self._arrive()
        try:
            # Shielded: one waiter's leaving must not cancel what the others wait for.
            found = await asyncio.shield(self.opened)
        except BaseException:
            self._leave()
            raise
        # Whoever has the version may want no more of it, and have it come in all the same.
        self._readers -= 1
        return found

    def complete(self, found: ObjectVersion) -> None:
        """End without a body: the directory has this version."""
        self.kept = found
        self._is_whole = True
        if not self.opened.done():
            self.opened.set_result(found)
        self._wake()

    def fail(self, error: BrainError) -> None:
        """End with an error, for everyone."""
        if self._is_whole:
            # Everyone has the bytes; they are only not kept.
            log.warning("fill_not_kept", code=error.code)
            return
        self.failure = error
        self.on_failure(error)
        if not self.opened.done():
            self.opened.set_exception(error)
        self._wake()

    def close(self) -> None:
        """End, with an error where nothing else has ended it."""
        if not self._is_whole and self.failure is None:
            self.fail(OriginFailed())

    async def whole(self) -> None:
        """Wait for the last byte.

        Raises what the origin's failing raises.
        """
        with self._reading():
            while not self._is_whole:
                if self.failure is not None:
                    raise self.failure.again()
                await self._progress()

    def final_version(self, found: ObjectVersion) -> ObjectVersion:
        """Give a version's fields as the last byte left them."""
        return self.kept or replace(found, size=self._receiver.written)

    async def body(self, span: Span | None) -> AsyncIterator[bytes]:
        """Give a span, or everything, as it comes in.

        Raises OriginFailed, OriginTimeout where the origin fails before its end.
        """
        position = 0 if span is None else span.start
        end = None if span is None else span.start + span.length
        with self._reading():
            while end is None or position < end:
                ready = self._receiver.written - position
                if ready > 0:
                    limit = ready if end is None else min(ready, end - position)
                    piece = await self._staging.run(
                        os.pread, self._file, min(limit, READ_BYTES), position
                    )
                    position += len(piece)
                    yield piece
                elif self.failure is not None:
                    raise self.failure.again()
                elif self._is_whole:
                    break
                else:
                    await self._progress()

    # --- the fetch's own steps --------------------------------------------------------------

    async def _receive(self, response: OriginResponse, found: ObjectVersion) -> None:
        is_begun = False
        self._size = found.size
        if response.body is not None:
            async for chunk in response.body:
                await self._receiver.write(chunk)
                await self._receiver.flush()
                if not is_begun:
                    is_begun = True
                    self._open_file()
                    self.opened.set_result(found)
                self._wake()
                self._check_length(found.size, is_last=False)
        self._check_length(found.size, is_last=True)
        if not is_begun:
            self.opened.set_result(found)

    def _check_length(self, size: int, *, is_last: bool) -> None:
        came = self._receiver.written
        if size >= 0 and (came > size or (is_last and came != size)):
            raise OriginFailed("The origin sent another number of bytes than it announced.")

    # --- who waits --------------------------------------------------------------------------

    async def _progress(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _open_file(self) -> None:
        # Before the file gets its lasting name, and until nobody refers to this flight.
        self._file = os.open(self._receiver.path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._file)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        self._arrive()
        try:
            yield
        finally:
            self._leave()

    def _arrive(self) -> None:
        self._readers += 1
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None

    def _leave(self) -> None:
        self._readers -= 1
        if not self._readers and not self._is_over and self.failure is None:
            self._leaving = asyncio.get_running_loop().call_later(ABANDON_S, self._abandon)

    def _abandon(self) -> None:
        if not self.opened.done():
            # How much it is the origin has not said yet.
            self._leaving = asyncio.get_running_loop().call_later(ABANDON_S, self._abandon)
            return
        is_long = self._size < 0 or self._size - self._receiver.written > ABANDON_BYTES
        if self.task is not None and not self._is_over and is_long:
            self.task.cancel()
