"""``GET`` and ``HEAD /o/{sha256}``: bytes of an object for a ticket.

A file is sent if it is unchanged since its verification; otherwise it is verified first. Only large
files go to the brain during their verification, because the brain checks every block.
"""

from collections.abc import Awaitable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from http import HTTPStatus
from typing import Final, NamedTuple

from edgecache.http.addresses import network_of
from edgecache.http.exchange import Exchange
from edgecache.http.files import FileBody
from edgecache.http.response_head import HeaderPairs
from edgecache.http.scope import HttpScope
from edgecache.protocol.names import NODE_HEADER, TICKET_HEADER, TICKET_PARAMETER
from edgecache.protocol.ranges import RangeNotSatisfiable, requested
from edgecache.protocol.tickets import Refusal, Ticket, TicketKind, TicketRefused
from edgecache.runtime.fair_shares import ShareKey
from edgecache.runtime.verified_files import FileState, state_of
from edgecache.worker.node import CacheWorker
from edgecache.worker.receipts import TicketUse, TooManyTickets
from edgecache.worker.refusals import Refused, not_held, ticket_refused, unavailable

# Answered from memory in one write; more would be held for each client that takes nothing.
LOOP_BYTES: Final = 128 << 10
# Verified before they are sent to the brain; longer ones would keep it waiting.
VERIFIED_FIRST_BYTES: Final = 64 << 20

_PARAMETER: Final = f"{TICKET_PARAMETER}="

Body = FileBody | bytes | bytearray


class _Read(NamedTuple):
    """A read that was admitted. text: the ticket's. size: of the whole object."""

    exchange: Exchange
    ticket: Ticket
    text: str
    sha256: bytes
    start: int
    length: int
    size: int


def ticket_text(scope: HttpScope) -> str:
    """Return the ticket of a request, from its header or its query. Raises Refused."""
    text = _given_ticket(scope)
    if not text:
        raise Refused(HTTPStatus.FORBIDDEN, "ticket_missing", "A ticket is required.")
    return text


def turn_of(node: CacheWorker, scope: HttpScope) -> ShareKey:
    """Return a request's queue key on the event loop: (organization, client's network)."""
    organization_id = node.verifier.organization_of(_given_ticket(scope))
    owner = "unknown" if organization_id is None else organization_id
    return owner, network_of(scope.client_address)


def admit(node: CacheWorker, text: str, *, sha256: bytes | None, kind: TicketKind) -> Ticket:
    """Return the ticket if it allows this. sha256: None to be compared later. Raises Refused."""
    try:
        return node.verifier.admit(text, sha256=sha256, kind=kind)
    except TicketRefused as refused:
        node.counters.add("tickets_refused")
        raise ticket_refused(refused) from None


def share_key_of(ticket: Ticket) -> ShareKey:
    share_key: ShareKey = (ticket.organization_id, ticket.bucket_id)
    return (*share_key, ticket.client_prefix) if ticket.client_prefix else share_key


def read(
    node: CacheWorker, scope: HttpScope, exchange: Exchange, sha256: bytes
) -> Awaitable[None] | None:
    """Answer a read; return what remains to be awaited. Raises Refused."""
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
    admitted = _Read(exchange, ticket, text, sha256, start, length, size)
    body = _at_hand(node, admitted)
    if body is None:
        return _verify_and_send(node, admitted, status, headers)
    return _send(node, admitted, status, headers, body)


def _send(
    node: CacheWorker, read: _Read, status: int, headers: HeaderPairs, body: Body
) -> Awaitable[None] | None:
    """Send verified bytes; return what remains to be awaited. Raises Refused."""
    metered = _metered_or_close(node, read, body) if read.ticket.is_direct else nullcontext()
    node.store.count_read(read.sha256)
    node.counters.add_read(read.length)
    if isinstance(body, FileBody):
        return _send_file(read, status, headers, body, metered)
    with metered:
        read.exchange.response_bytes(status, headers, body)
    return None


async def _send_file(
    read: _Read,
    status: int,
    headers: HeaderPairs,
    body: FileBody,
    metered: AbstractContextManager[None],
) -> None:
    with metered:
        await read.exchange.response_file(status, headers, body)


async def _verify_and_send(
    node: CacheWorker, read: _Read, status: int, headers: HeaderPairs
) -> None:
    """Verify a file, then send its bytes. Raises Refused."""
    verified = await node.verify(read.sha256, share_key_of(read.ticket))
    if verified is None:
        raise not_held()
    body, state = _open(node, read)
    if state != verified:
        body.close()
        raise not_held()
    sending = _send(node, read, status, headers, body)
    if sending is not None:
        await sending


def _metered_or_close(node: CacheWorker, read: _Read, body: Body) -> AbstractContextManager[None]:
    """Return what counts a direct read; close its file if that is refused. Raises Refused."""
    try:
        use = _begin_use(node, read)
    except Refused:
        if isinstance(body, FileBody):
            body.close()
        raise
    return _metered(node, read, use)


def _at_hand(node: CacheWorker, read: _Read) -> Body | None:
    """Return few bytes that are in memory, or the open file; None if it must be verified first.

    Raises Refused.
    """
    files = node.store.files
    if read.length <= LOOP_BYTES:
        organization_id = read.ticket.organization_id
        piece = files.cached(
            read.sha256, read.start, read.length, read.size, organization_id=organization_id
        )
        if piece is not None:
            return piece
    body, state = _open(node, read)
    if files.verified.knows(read.sha256, state):
        return body
    if read.ticket.is_direct or read.size <= VERIFIED_FIRST_BYTES:
        body.close()
        return None
    node.verify_soon(read.sha256, share_key_of(read.ticket))
    return body


def _open(node: CacheWorker, read: _Read) -> tuple[FileBody, FileState]:
    """Open a file, which must not change while it is sent; return its state, too.

    Raises Refused.
    """
    try:
        descriptor = node.store.files.open(read.sha256)
    except FileNotFoundError:
        raise not_held() from None
    state = state_of(descriptor)
    body = FileBody(
        descriptor,
        read.start,
        read.length,
        node.threads.files,
        share_key_of(read.ticket),
        lambda: state_of(descriptor) == state,
    )
    return body, state


def _given_ticket(scope: HttpScope) -> str:
    text = scope.headers.get(TICKET_HEADER)
    if not text:
        for part in scope.query_string.split("&"):
            if part.startswith(_PARAMETER):
                return part[len(_PARAMETER) :]
    return text


def _held_size(node: CacheWorker, sha256: bytes) -> int:
    """Return the size of an object; a missing file or one of another size counts as not held."""
    size, files = node.reader.size(sha256), node.store.files
    if size is not None:
        if sha256 in files.hot or files.size(sha256) == size:
            return size
        node.reader.forget(sha256)
        if node.reader.size(sha256) is not None:
            node.lose(sha256, files.state(sha256))
            node.reader.forget(sha256)
    node.counters.add("misses")
    raise not_held()


def _span(header: str | None, size: int) -> tuple[int, int] | None:
    try:
        return requested(header, size)
    except RangeNotSatisfiable:
        raise Refused(
            HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
            "range_not_satisfiable",
            f"The object has {size} bytes.",
            (("content-range", f"bytes */{size}"),),
        ) from None


def _check_covers(node: CacheWorker, ticket: Ticket, start: int, length: int) -> None:
    if start < ticket.start or start + length > ticket.end:
        node.counters.add("tickets_refused")
        raise ticket_refused(TicketRefused(Refusal.OUT_OF_RANGE))


def _begin_use(node: CacheWorker, read: _Read) -> TicketUse:
    """Begin to use a ticket. Raises Refused."""
    try:
        return node.receipts.begin(read.ticket, read.text, read.length, now=node.clock.now())
    except TooManyTickets:
        raise unavailable("busy", "Too many tickets are in use.") from None
    except TicketRefused as refused:
        node.counters.add("tickets_refused")
        raise ticket_refused(refused) from None


@contextmanager
def _metered(node: CacheWorker, read: _Read, use: TicketUse) -> Iterator[None]:
    """Count the bytes that the block hands to the client's socket, for the receipt."""
    node.direct_answers += 1
    try:
        yield
    finally:
        node.direct_answers -= 1
        sent = min(read.length, read.exchange.sent_bytes)
        node.receipts.end(use, sent)
        node.counters.add("direct_bytes", sent)


def _names(header: str, etag: str) -> bool:
    if not header:
        return False
    tags = [tag.strip().removeprefix("W/") for tag in header.split(",")]
    return etag in tags or "*" in tags
