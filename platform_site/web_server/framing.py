"""Determine from the received bytes how far a request has arrived.

HTTP is parsed only as far as needed to know whether a thread would have to wait for the client.
Malformed requests count as complete: gunicorn's parser refuses them.
"""

import re
from enum import Enum, auto
from typing import Final

HEAD_LIMIT_BYTES: Final = 64 * 1024
# A request up to this size is received before a thread processes it: the largest body of SQL and of
# other JSON requests is 1 MiB.
BUFFER_LIMIT_BYTES: Final = 2**20 + HEAD_LIMIT_BYTES

_END: Final = b"\r\n\r\n"
_LENGTH: Final = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,18})[ \t]*\r\n")
# In other forms, for example with a hundred leading zeros, gunicorn may still parse it as a length.
_UNREAD_LENGTH: Final = re.compile(rb"\r\ncontent-length[ \t]*:")
_CHUNKED: Final = re.compile(rb"\r\ntransfer-encoding[ \t]*:")
_CHUNK_SIZE: Final = re.compile(rb"([0-9a-f]{1,8})\r\n", re.IGNORECASE)
# A client that expects 100 (Continue) sends no body before a thread requests it.
_EXPECT: Final = re.compile(rb"\r\nexpect[ \t]*:")
_FORWARDED_FOR: Final = re.compile(rb"\r\nx-forwarded-for:([^\r\n]*)", re.IGNORECASE)


class Progress(Enum):
    """How far a request has arrived.

    STREAM: a thread has to read the rest of the body, which is large or of unknown length.
    TOO_LONG: the head exceeds its limit.
    """

    PARTIAL = auto()
    COMPLETE = auto()
    STREAM = auto()
    TOO_LONG = auto()


def progress(received: bytes | bytearray) -> tuple[Progress, int]:
    """Return how far the first request in the buffer has arrived, and its size if that is known.

    Until so many bytes have arrived, another call would return the same; 0 if unknown.
    """
    end = received.find(_END)
    if end < 0:
        return Progress.TOO_LONG if len(received) > HEAD_LIMIT_BYTES else Progress.PARTIAL, 0
    # Includes the line break after the last header. In lower case, because a case-insensitive
    # search is slow.
    head = bytes(received[: end + 2]).lower()
    body_start = end + len(_END)
    if _CHUNKED.search(head):
        return Progress.COMPLETE if _has_last_chunk(received, body_start) else Progress.STREAM, 0
    length = _LENGTH.search(head)
    if length is None:
        return Progress.STREAM if _UNREAD_LENGTH.search(head) else Progress.COMPLETE, 0
    size = body_start + int(length[1])
    if len(received) >= size:
        return Progress.COMPLETE, size
    is_long = size > BUFFER_LIMIT_BYTES or _EXPECT.search(head) is not None
    return Progress.STREAM if is_long else Progress.PARTIAL, size


def _has_last_chunk(received: bytes | bytearray, at: int) -> bool:
    """True if all chunks from this position have arrived.

    The chunks are parsed, because the bytes of a last chunk may also be content of an unfinished
    one.
    """
    while (size := _CHUNK_SIZE.match(received, at)) is not None:
        length = int(size[1], 16)
        if not length:
            return received.startswith(b"\r\n", size.end())
        at = size.end() + length + len(b"\r\n")
    return False


def forwarded_for(received: bytes | bytearray) -> str:
    """Return X-Forwarded-For from a received head, with lines joined like in gunicorn."""
    head = bytes(received[: received.find(_END)])
    return b",".join(_FORWARDED_FOR.findall(head)).decode("latin-1")
