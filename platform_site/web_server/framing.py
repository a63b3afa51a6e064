"""How far a request has arrived, from the bytes received so far.

Only enough of HTTP is read to know whether a thread that parses the request would have to wait for
its client. Whatever looks wrong counts as complete: gunicorn's parser refuses it.
"""

import re
from enum import Enum, auto
from typing import Final

HEAD_LIMIT_BYTES: Final = 64 * 1024
# A request up to this size is received before a thread begins with it: the largest body of SQL,
# and of everything else, is 1 MiB.
BUFFER_LIMIT_BYTES: Final = 2**20 + HEAD_LIMIT_BYTES

_END: Final = b"\r\n\r\n"
_LENGTH: Final = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,18})[ \t]*\r\n", re.IGNORECASE)
# A client that expects 100 (Continue) sends no body before a thread has asked for it.
_UNMEASURED: Final = re.compile(rb"\r\n(transfer-encoding|expect):", re.IGNORECASE)
_LAST_CHUNK: Final = b"\r\n0\r\n\r\n"


class Progress(Enum):
    """How far a request has arrived.

    STREAM: a thread has to read the rest of the body, which is large or of unknown length.
    TOO_LONG: the head exceeds its limit.
    """

    PARTIAL = auto()
    COMPLETE = auto()
    STREAM = auto()
    TOO_LONG = auto()


def progress(received: bytes | bytearray) -> Progress:
    """Return how far the first request in the buffer has arrived."""
    end = received.find(_END)
    if end < 0:
        return Progress.TOO_LONG if len(received) > HEAD_LIMIT_BYTES else Progress.PARTIAL
    # With the line break after the last header.
    head = bytes(received[: end + 2])
    if _UNMEASURED.search(head):
        return Progress.COMPLETE if received.endswith(_LAST_CHUNK) else Progress.STREAM
    length = _LENGTH.search(head)
    if length is None:
        return Progress.COMPLETE
    size = end + len(_END) + int(length[1])
    if len(received) >= size:
        return Progress.COMPLETE
    return Progress.STREAM if size > BUFFER_LIMIT_BYTES else Progress.PARTIAL
