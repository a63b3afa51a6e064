"""``GET`` and ``HEAD /o/{sha256}``: bytes for a ticket. Granian moves them; this decides."""

from http import HTTPStatus
from typing import Any, Final

from edgecache.protocol.names import NODE_HEADER, TICKET_HEADER, TICKET_PARAMETER
from edgecache.protocol.ranges import RangeNotSatisfiable, requested
from edgecache.protocol.tickets import Kind, Refusal, Ticket, TicketRefused
from edgecache.worker.node import Node
from edgecache.worker.serving.refusals import (
    not_held,
    range_not_satisfiable,
    ticket_missing,
    ticket_refused,
    unavailable,
)

Header = tuple[str, str]

# As much as Granian reads at a time; so a client that takes nothing holds no more memory this way.
AT_ONCE_BYTES: Final = 128 << 10

_PARAMETER: Final = f"{TICKET_PARAMETER}="


def ticket_text(scope: Any, headers: Any) -> str:
    """Give the ticket that a request shows, in its header or its query. Raises Refused."""
    text = headers.get(TICKET_HEADER)
    if text is None:
        for part in scope.query_string.split("&"):
            if part.startswith(_PARAMETER):
                text = part[len(_PARAMETER) :]
                break
    if not text:
        raise ticket_missing()
    return str(text)


def admit(node: Node, text: str, *, sha256: bytes, kind: Kind) -> Ticket:
    """Give the ticket if it allows this. Raises Refused."""
    try:
        return node.verifier.admit(text, sha256=sha256, kind=kind)
    except TicketRefused as refused:
        node.counters.add("tickets_refused")
        raise ticket_refused(refused) from None


def read(node: Node, scope: Any, protocol: Any, sha256: bytes, *, is_head: bool) -> None:
    """Answer a read. Raises Refused."""
    node.check_can_read()
    given = scope.headers
    text = ticket_text(scope, given)
    ticket = admit(node, text, sha256=sha256, kind=Kind.READ)
    size = _held_size(node, sha256)
    etag = f'"{sha256.hex()}"'
    headers = [("etag", etag), ("accept-ranges", "bytes"), (NODE_HEADER, node.name)]
    if _names(given.get("if-none-match"), etag):
        protocol.response_empty(HTTPStatus.NOT_MODIFIED, headers)
        return
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
    if is_head:
        protocol.response_empty(status, headers)
        return
    node.store.count_read(sha256)
    node.counters.add_read(length)
    if ticket.is_direct:
        _meter(node, scope.client, (ticket, text), length, headers)
    _answer(node, protocol, (status, headers), sha256, (start, length, size))


def _answer(
    node: Node,
    protocol: Any,
    head: tuple[int, list[Header]],
    sha256: bytes,
    span: tuple[int, int, int],
) -> None:
    """Answer with the bytes: small ones that are in memory at once, others by Granian's threads."""
    start, length, size = span
    if length <= AT_ONCE_BYTES:
        piece = node.store.files.cached(sha256, start, length, size)
        if piece is not None:
            protocol.response_bytes(*head, piece)
            return
    path = node.store.files.path(sha256)
    if length == size:
        protocol.response_file(*head, path)
    else:
        protocol.response_file_range(*head, path, start, start + length)


def _held_size(node: Node, sha256: bytes) -> int:
    """Give the size of an object; a file that went or shrank is no longer held."""
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


def _meter(
    node: Node, client: str, shown: tuple[Ticket, str], length: int, headers: list[Header]
) -> None:
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

    head_bytes = sum(len(name) + len(value) + 4 for name, value in headers)
    node.acknowledged.watch(client, length, head_bytes, done)


def _names(header: str | None, etag: str) -> bool:
    if not header:
        return False
    tags = [tag.strip().removeprefix("W/") for tag in header.split(",")]
    return etag in tags or "*" in tags
