"""The brain's own requests to workers: store a blob, delete one, prove an endpoint.

Each has its own connection: a blob is large, and a stalled worker must not delay anything else.
"""

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import urlsplit

from edgecache.brain.origins.egress.trust import trusting
from edgecache.protocol.names import NONCE_PARAMETER, PROVE_PATH, TICKET_HEADER, object_path

CONNECT_TIMEOUT_S: Final = 3.0
ANSWER_TIMEOUT_S: Final = 15.0
# The slowest acceptable worker; the timeout of a store grows with its size accordingly.
SLOWEST_BYTES_PER_S: Final = 512 * 1024
HEAD_LIMIT_BYTES: Final = 16_384
BODY_LIMIT_BYTES: Final = 1024
PIECE_BYTES: Final = 2**18
LINE_END: Final = b"\r\n"


class NodeFailed(Exception):
    """A worker did not do what it was asked for. status: of its response, 0 without one."""

    def __init__(self, reason: str, *, status: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status


@dataclass(frozen=True, slots=True)
class Address:
    """A worker's endpoint. is_guarded: connect to public addresses only."""

    endpoint: str
    is_guarded: bool


@dataclass(frozen=True, slots=True)
class Reply:
    """A short answer."""

    status: int
    body: bytes


async def store(address: Address, sha256: bytes, path: Path, *, size: int, ticket: str) -> None:
    """Upload a file to a worker under its hash; the worker checks the hash before it accepts.

    Raises NodeFailed; status 507 when it is full.
    """
    try:
        file = path.open("rb")
    except OSError as exc:
        raise NodeFailed("file_gone") from exc
    with file:
        timeout_s = ANSWER_TIMEOUT_S + size / SLOWEST_BYTES_PER_S
        reply = await _ask(
            address, "PUT", object_path(sha256), ticket=ticket, body=(file, size), limit_s=timeout_s
        )
    if reply.status not in {200, 201}:
        raise NodeFailed("store_refused", status=reply.status)


async def prove(address: Address, nonce: str) -> bytes:
    """Return an endpoint's response to a nonce. Raises NodeFailed."""
    reply = await _ask(address, "GET", f"{PROVE_PATH}?{NONCE_PARAMETER}={nonce}")
    if reply.status != 200:
        raise NodeFailed("proof_refused", status=reply.status)
    return reply.body


@asynccontextmanager
async def dial(
    address: Address,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Return a connection to a worker, to the very address that was checked.

    Raises NodeFailed.
    """
    parts = urlsplit(address.endpoint)
    host = parts.hostname or ""
    context = trusting() if parts.scheme == "https" else None
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            target = await resolve(host, parts.port or 0, is_guarded=address.is_guarded)
            reader, writer = await asyncio.open_connection(
                target,
                parts.port,
                ssl=context,
                server_hostname=host if context else None,
                limit=HEAD_LIMIT_BYTES,
            )
    except (OSError, TimeoutError) as exc:
        raise NodeFailed("unreachable") from exc
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await writer.wait_closed()


async def resolve(host: str, port: int, *, is_guarded: bool) -> str:
    """Return the address to connect to. Raises NodeFailed for a forbidden one, OSError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(row[4][0]) for row in found]
    if is_guarded and not all(_is_public(text) for text in addresses):
        raise NodeFailed("address_forbidden")
    return addresses[0]


def _is_public(text: str) -> bool:
    address = ipaddress.ip_address(text.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_global and not (mapped or address).is_multicast


async def _ask(
    address: Address,
    method: str,
    target: str,
    *,
    ticket: str = "",
    body: tuple[BinaryIO, int] | None = None,
    limit_s: float = ANSWER_TIMEOUT_S,
) -> Reply:
    size = body[1] if body else 0
    head = [f"{method} {target} HTTP/1.1", f"host: {urlsplit(address.endpoint).netloc}"]
    head += [f"content-length: {size}", "connection: close"]
    if ticket:
        head.append(f"{TICKET_HEADER}: {ticket}")
    async with dial(address) as (reader, writer):
        try:
            async with asyncio.timeout(limit_s):
                writer.write("\r\n".join([*head, "", ""]).encode("ascii"))
                await writer.drain()
                if body is not None and size:
                    # An early error response says more than the broken pipe that follows it.
                    with contextlib.suppress(ConnectionError):
                        await _send(writer, body[0])
                return await _read(reader)
        except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError) as exc:
            raise NodeFailed("broken_off") from exc


async def _send(writer: asyncio.StreamWriter, file: BinaryIO) -> None:
    while piece := await asyncio.to_thread(file.read, PIECE_BYTES):
        writer.write(piece)
        await writer.drain()


async def _read(reader: asyncio.StreamReader) -> Reply:
    head = await reader.readuntil(LINE_END * 2)
    status_line, *lines = head.split(LINE_END)
    status = int(status_line.split(b" ", 2)[1])
    lengths = [line.partition(b":")[2] for line in lines if line.lower().startswith(b"content-l")]
    length = min(int(lengths[0]) if lengths else 0, BODY_LIMIT_BYTES)
    return Reply(status, await reader.readexactly(length))
