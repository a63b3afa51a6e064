"""A worker's heartbeat and what the brain answers.

Requests of a worker refuse unknown fields; answers allow them, so that a brain may be upgraded
before its workers. Bytes are base64.
"""

from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta

from edgecache.protocol.fields import INTEGER_LIMIT, NO_NUL, Answer, Count, Message
from edgecache.protocol.tickets import KEY_ID_BYTES, MAC_KEY_BYTES

KEY_LIMIT: Final = 8
KEY_ID: Final = rf"\A[0-9a-f]{{{2 * KEY_ID_BYTES}}}\Z"
PROBLEM_LIMIT: Final = 16
PROBLEM_LENGTH: Final = 32


class Problem(StrEnum):
    """What a worker reports about itself with each heartbeat while it applies.

    draining: it was asked to stop, and accepts no new bytes.
    disk_full: the last write found no space.
    disk_failing: reads or writes failed otherwise.
    corruption: a file did not hash to its name (and was removed).
    """

    DRAINING = "draining"
    DISK_FULL = "disk_full"
    DISK_FAILING = "disk_failing"
    CORRUPTION = "corruption"


class Heartbeat(Message, frozen=True):
    """A worker's state.

    incarnation: new at each start.
    sequence: rises with each heartbeat and inventory of an incarnation, which a worker sends one
    after another. A message that is not above the last one is late and must change nothing: its
    sender has given up on it, and sends everything again.
    used_bytes, capacity_bytes: of the disk, in whole blocks.
    evictions: since the store was created.
    load: from 0, idle, to 1, fully loaded.
    endpoint: where it is reached, None when unknown.
    """

    incarnation: Annotated[str, Meta(max_length=36, pattern=NO_NUL)]
    sequence: Count
    used_bytes: Count
    object_count: Count
    capacity_bytes: Annotated[int, Meta(ge=1, le=INTEGER_LIMIT - 1)]
    evictions: Count
    load: Annotated[float, Meta(ge=0)]
    endpoint: Annotated[str, Meta(max_length=255, pattern=NO_NUL)] | None = None
    # A problem that this side does not know is kept unchanged.
    problems: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=PROBLEM_LENGTH)], ...],
        Meta(max_length=PROBLEM_LIMIT),
    ] = ()


class TicketKey(Answer, frozen=True):
    """A key for the MACs of one node's tickets, and the ``key_id`` of those tickets."""

    kid: Annotated[str, Meta(pattern=KEY_ID)]
    key: Annotated[bytes, Meta(min_length=MAC_KEY_BYTES, max_length=MAC_KEY_BYTES)]

    def __repr__(self) -> str:
        """Return its name; the key is secret."""
        return f"TicketKey({self.kid!r})"


class HeartbeatAnswer(Answer, frozen=True):
    """What the brain answers.

    now: its clock, Unix seconds. keys: tickets of no other key are valid. status: the node's.
    wants_inventory: send a full one. jobs: how many wait. interval_s: until the next heartbeat.
    """

    now: Annotated[float, Meta(ge=1)]
    keys: Annotated[tuple[TicketKey, ...], Meta(max_length=KEY_LIMIT)]
    status: Annotated[str, Meta(max_length=32)]
    wants_inventory: bool
    jobs: Count
    interval_s: Annotated[float, Meta(ge=0.05, le=300)]
