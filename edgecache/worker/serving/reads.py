"""``GET`` and ``HEAD /o/{sha256}``: bytes of an object for a ticket."""

import os
from collections.abc import Awaitable
from http import HTTPStatus
from typing import Final

from edgecache.http.exchange import Exchange
from edgecache.http.files import FileBody
from edgecache.http.scope import Scope
from edgecache.protocol.names import NODE_HEADER, TICKET_HEADER, TICKET_PARAMETER
from edgecache.protocol.ranges import RangeNotSatisfiable, requested
from edgecache.protocol.tickets import Refusal, Ticket, TicketKind, TicketRefused
from edgecache.worker.node import Node
from edgecache.worker.serving.refusals import (
    Refused,
    not_held,
    range_not_satisfiable,
    ticket_missing,
    ticket_refused,
    unavailable,
)

# Answered from memory in one write; more would be held for each client that takes nothing.
AT_ONCE_BYTES: Final = 128 << 10

_PARAMETER: Final = f"{TICKET_PARAMETER}="


def ticket_text(scope: Scope) -> str:
    """Return the ticket of a request, from its header or its query. Raises Refused."""
    text = scope.headers.get(TICKET_HEADER)
    if not text:
        for part in scope.query_string.split("&"):
            if part.startswith(_PARAMETER):
                text = part[len(_PARAMETER) :]
                break
    if not text:
        raise ticket_missing()
    return text


def admit(node: Node, text: str, *, sha256: bytes, kind: TicketKind) -> Ticket:
    """Return the ticket if it allows this. Raises Refused."""
    try:
        return node.verifier.admit(text, sha256=sha256, kind=kind)
    except TicketRefused as refused:
        node.counters.add("tickets_refused")
        raise ticket_refused(refused) from None


def read(node: Node, scope: Scope, exchange: Exchange, sha256: bytes) -> Awaitable[None] | None:
    """Answer a read; return what is left to wait for. Raises Refused."""
    node.check_can_read()
    given = scope.headers
    text = ticket_text(scope)
    ticket = admit(node, text, sha256=sha256, kind=TicketKind.READ)
    size = _held_size(node, sha256)
    etag = f'"{sha256.hex()}"'
    headers = [("etag", etag), ("accept-ranges", "bytes"), (NODE_HEADER, node.name)]
    if _names(given.get("if-none-match"), etag):
        exchange.response_empty(HTTPStatus.NOT_MODIFIED, headers)
        return None
    asked = given.get("range")
    span = _span(asked, size) if asked and given.get("if-range", etag) == etag else None
    start, length = span or (0, size)
    _check_covers(node, ticket, start, length)
    headers += [
        ("content-length", str(length)),
        ("content-type", "application/octet-stream"),
        ("x-content-type-options", "nosniff"),
    ]
    status = 200
    if span is not None:
        status = 206
        headers.append(("content-range", f"bytes {start}-{start + length - 1}/{size}"))
    if scope.method == "HEAD":
        exchange.response_empty(status, headers)
        return None
    body = _body(node, sha256, start, length, size)
    if ticket.is_direct:
        _meter_or_close(node, exchange, (ticket, text), length, body)
    node.store.count_read(sha256)
    node.counters.add_read(length)
    if isinstance(body, FileBody):
        return exchange.response_file(status, headers, body)
    exchange.response_bytes(status, headers, body)
    return None


def _meter_or_close(
    node: Node,
    exchange: Exchange,
    shown: tuple[Ticket, str],
    length: int,
    body: FileBody | bytes | bytearray,
) -> None:
    """Start metering a direct read; close its file if that is refused. Raises Refused."""
    try:
        _meter(node, exchange, shown, length)
    except Refused:
        if isinstance(body, FileBody):
            body.close()
        raise


def _body(
    node: Node, sha256: bytes, start: int, length: int, size: int
) -> bytes | bytearray | FileBody:
    """Return bytes that are few and in memory now, else the open file. Raises Refused."""
    if length <= AT_ONCE_BYTES:
        piece = node.store.files.cached(sha256, start, length, size)
        if piece is not None:
            return piece
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(node.store.files.path(sha256), flags)
    except FileNotFoundError:
        raise not_held() from None
    return FileBody(descriptor, start, length, node.threads.sending)


def _held_size(node: Node, sha256: bytes) -> int:
    """Return the size of an object; one whose file is gone or has another size is not held."""
    size, files = node.reader.size(sha256), node.store.files
    if size is not None:
        if sha256 in files.hot or files.size(sha256) == size:
            return size
        node.reader.forget(sha256)
        if node.reader.size(sha256) is not None:
            node.lose(sha256)
            node.reader.forget(sha256)
    node.counters.add("misses")
    raise not_held()


def _span(header: str | None, size: int) -> tuple[int, int] | None:
    try:
        return requested(header, size)
    except RangeNotSatisfiable:
        raise range_not_satisfiable(size) from None


def _check_covers(node: Node, ticket: Ticket, start: int, length: int) -> None:
    if start < ticket.start or start + length > ticket.end:
        node.counters.add("tickets_refused")
        raise ticket_refused(TicketRefused(Refusal.OUT_OF_RANGE))


def _meter(node: Node, exchange: Exchange, shown: tuple[Ticket, str], length: int) -> None:
    """Count what the client takes of this answer, for the receipt."""
    if node.receipts.is_full:
        raise unavailable("busy", "Too many tickets are in use.")
    ticket, text = shown
    try:
        use = node.receipts.begin(ticket, text, length, now=node.clock.now())
    except TicketRefused as refused:
        node.counters.add("tickets_refused")
        raise ticket_refused(refused) from None

    def done(taken: int) -> None:
        node.receipts.end(use, taken)
        node.counters.add("direct_bytes", taken)

    node.acknowledged.watch(exchange, length, done)


def _names(header: str, etag: str) -> bool:
    if not header:
        return False
    tags = [tag.strip().removeprefix("W/") for tag in header.split(",")]
    return etag in tags or "*" in tags
