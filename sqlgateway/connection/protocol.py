"""The server's side of PostgreSQL's protocol, as far as it can be read off the bytes.

A message is a letter and a length, which counts itself (PostgreSQL, "Message Formats"). Messages
are walked through one by one: a tenant can make any bytes appear inside of one.
"""

from collections.abc import Iterator
from typing import Final

# The message that ends an answer, up to the letter that tells the transaction's status.
READY: Final = b"Z\x00\x00\x00\x05"
# Rows and their description, ends of statements, errors, notices, settings, and the extended
# protocol's acknowledgements.
PLAIN: Final = frozenset(b"TDCIENSZ123tns")
ROW: Final = ord("D")


def is_whole_answer(said: bytes) -> bool:
    """Say whether these bytes are whole messages up to the one that ends an answer.

    False also for what takes more than reading: COPY, and notifications, which libpq collects.
    """
    if said[-6:-1] != READY:
        return False
    messages = list(_messages(said))
    if any(kind not in PLAIN for kind, _ in messages):
        return False
    return messages[-1] == (READY[0], len(said))


def longest_row(beginning: bytes) -> int | None:
    """Give the bytes of the longest of an answer's first rows; None where there is no whole one."""
    lengths = []
    begin = 0
    for kind, end in _messages(beginning):
        if kind == ROW and end <= len(beginning):
            lengths.append(end - begin)
        begin = end
    return max(lengths, default=None)


def _messages(said: bytes) -> Iterator[tuple[int, int]]:
    """Give each message's letter and where it ends, which may be past what is there."""
    at = 0
    while at + 5 <= len(said):
        kind = said[at]
        at += 1 + int.from_bytes(said[at + 1 : at + 5], "big")
        yield kind, at
