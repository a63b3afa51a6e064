"""The parts of PostgreSQL's protocol that can be read from the server's bytes.

A message has a letter, and a length that includes itself (PostgreSQL, "Message Formats"). Messages
are read one by one, because a tenant can put any bytes into a message.
"""

import re
from collections.abc import Iterator
from struct import Struct
from typing import Final

# The message that ends an answer, up to the letter of the transaction's status.
READY: Final = b"Z\x00\x00\x00\x05"
HEADER: Final = Struct(">BI")
# The last fields of an error, its line and routine, then READY. Between them the server may report
# settings that the error rolled back.
FAILED: Final = re.compile(rb"\0L\d+\0R\w+\0\0(?:S\0\0..[^\0]+\0[^\0]*\0)*" + READY, re.DOTALL)
# Rows and their description, ends of statements, errors, notices, settings, and acknowledgements
# of the extended protocol.
PLAIN: Final = frozenset(b"TDCIENSZ123tns")
ROW: Final = ord("D")


def is_whole_answer(said: bytes) -> bool:
    """True if these bytes are complete messages, of which the last one ends an answer.

    False if there is a COPY or a notification, which libpq has to handle.
    """
    size = len(said)
    if said[-6:-1] != READY:
        return False
    # Every request calls this twice; _messages would be slower.
    at = kind = 0
    while at + HEADER.size <= size:
        kind, length = HEADER.unpack_from(said, at)
        if kind not in PLAIN:
            return False
        at += 1 + length
    return kind == READY[0] and at == size


def ends_in_error(tail: bytes) -> bool:
    """True if an answer, of which these bytes are the end, ends in an error."""
    return FAILED.search(tail) is not None


def longest_row(beginning: bytes) -> int | None:
    """Return the length of the longest row at the beginning of an answer; None without a row.

    The last row may be incomplete: its length is in its first bytes.
    """
    lengths = []
    begin = 0
    for kind, end in _messages(beginning):
        if kind == ROW:
            lengths.append(end - begin)
        begin = end
    return max(lengths, default=None)


def _messages(said: bytes) -> Iterator[tuple[int, int]]:
    """Yield each message's letter and end; the end may be after the available bytes."""
    at = 0
    while at + 5 <= len(said):
        kind = said[at]
        at += 1 + int.from_bytes(said[at + 1 : at + 5], "big")
        yield kind, at
