"""``PUT`` and ``DELETE /o/{sha256}``: the brain has a worker keep or drop an object."""

import asyncio
import logging
import sqlite3
from collections.abc import Awaitable
from http import HTTPStatus
from typing import Final

from edgecache.http.exchange import BodyTimeout, Exchange
from edgecache.http.scope import HttpScope
from edgecache.protocol import batches
from edgecache.protocol.heartbeats import Problem
from edgecache.protocol.tickets import Refusal, Ticket, TicketKind, TicketRefused
from edgecache.worker.node import SHARE_KEY, CacheWorker
from edgecache.worker.receiving import receive
from edgecache.worker.refusals import Refused, no_space, ticket_refused, unavailable
from edgecache.worker.serving.reads import admit, share_key_of, ticket_text
from edgecache.worker.store.incoming import WrongBytes, keep_all
from edgecache.worker.store.worker_store import StoreFull

log = logging.getLogger(__name__)

LENGTH_DIGITS: Final = 19


async def store(node: CacheWorker, scope: HttpScope, exchange: Exchange, sha256: bytes) -> None:
    """Store an object whose bytes hash to its name. Raises Refused."""
    node.check_can_store()
    ticket = admit(node, ticket_text(scope), sha256=sha256, kind=TicketKind.STORE)
    size = _content_length(scope)
    if size > ticket.length:
        raise ticket_refused(TicketRefused(Refusal.OUT_OF_RANGE))
    status = await _answered(node, _store(node, exchange, ticket, size))
    exchange.response_empty(status, [("content-length", "0"), ("etag", f'"{sha256.hex()}"')])


async def store_batch(node: CacheWorker, scope: HttpScope, exchange: Exchange) -> None:
    """Take many small objects in one message, all of them or none. Raises Refused."""
    node.check_can_store()
    # Before the body, which an unauthenticated client could send very slowly.
    ticket = admit(node, ticket_text(scope), sha256=None, kind=TicketKind.STORE_BATCH)
    if _content_length(scope) > batches.MESSAGE_BYTES:
        raise Refused(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            "batch_too_large",
            "Send fewer bytes in one request.",
        )
    status = await _answered(node, _store_batch(node, exchange, ticket))
    exchange.response_empty(status, [("content-length", "0")])


async def delete(node: CacheWorker, scope: HttpScope, exchange: Exchange, sha256: bytes) -> None:
    """Delete an object, if it is held, at the end of its lease. Raises Refused."""
    node.check_can_read()
    ticket = admit(node, ticket_text(scope), sha256=sha256, kind=TicketKind.DELETE)
    SHARE_KEY.set(share_key_of(ticket))
    try:
        await node.run_on_disk(node.store.schedule_unlink, sha256)
    except (OSError, sqlite3.Error) as error:
        raise _refused_by_disk(node, error) from error
    exchange.response_empty(HTTPStatus.NO_CONTENT, [])


async def _store(node: CacheWorker, exchange: Exchange, ticket: Ticket, size: int) -> HTTPStatus:
    SHARE_KEY.set(share_key_of(ticket))
    if await node.run_on_disk(node.store.has, ticket.sha256):
        return HTTPStatus.OK
    async with _fill(node):
        is_new = await receive(node, exchange, ticket.sha256, size)
    return HTTPStatus.CREATED if is_new else HTTPStatus.OK


async def _store_batch(node: CacheWorker, exchange: Exchange, ticket: Ticket) -> HTTPStatus:
    SHARE_KEY.set(share_key_of(ticket))
    async with _fill(node):
        try:
            index, blobs = batches.decode(await exchange())
        except batches.MalformedBatch:
            raise Refused(
                HTTPStatus.BAD_REQUEST, "batch_malformed", "The message is not a batch."
            ) from None
        if batches.name_of(index) != ticket.sha256:
            raise ticket_refused(TicketRefused(Refusal.WRONG_OBJECT))
        new = await node.run_on_disk(keep_all, node.store, blobs)
    node.problems.clear(Problem.DISK_FULL, Problem.DISK_FAILING)
    if new:
        node.counters.add("stores", len(new))
        node.counters.add("stored_bytes", sum(len(blobs[sha256]) for sha256 in new))
    return HTTPStatus.CREATED if new else HTTPStatus.OK


def _fill(node: CacheWorker) -> asyncio.Semaphore:
    """Return what an object is stored in. Raises Refused if there is no place."""
    if node.fills.locked():
        raise unavailable("busy", "Too many objects are being stored.")
    return node.fills


async def _answered(node: CacheWorker, storing: Awaitable[HTTPStatus]) -> HTTPStatus:
    """Return the status of a store that succeeded. Raises Refused."""
    try:
        return await storing
    except StoreFull:
        raise no_space() from None
    except BodyTimeout:
        raise Refused(
            HTTPStatus.REQUEST_TIMEOUT, "too_slow", "The bytes come too slowly."
        ) from None
    except WrongBytes:
        node.counters.add("wrong_bytes")
        raise Refused(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            "wrong_bytes",
            "The bytes do not hash to the name; nothing was kept.",
        ) from None
    except (OSError, sqlite3.Error) as error:
        raise _refused_by_disk(node, error) from error


def _content_length(scope: HttpScope) -> int:
    text = scope.headers.get("content-length")
    if not text:
        raise Refused(HTTPStatus.LENGTH_REQUIRED, "length_required", "Send a Content-Length.")
    if not text.isascii() or not text.isdecimal() or len(text) > LENGTH_DIGITS:
        raise Refused(HTTPStatus.BAD_REQUEST, "length_malformed", "Content-Length is no number.")
    return int(text)


def _refused_by_disk(node: CacheWorker, error: OSError | sqlite3.Error) -> Refused:
    problem = node.problems.report_disk(error)
    if problem is None:
        return unavailable("busy", "Too many files are open.")
    log.error("not_stored", extra={"problem": str(problem), "reason": str(error)})
    if problem is Problem.DISK_FULL:
        return no_space()
    return Refused(HTTPStatus.INSUFFICIENT_STORAGE, "disk_failing", "The disk failed to store it.")
