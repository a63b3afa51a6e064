"""A worker's heartbeat and what the brain answers.

How all messages go: ``as_json`` gives what ``json.dumps`` writes; ``read`` takes what
``fields.parse`` gave and raises MalformedMessage with the wrong fields' names. Requests of a worker
refuse unknown fields; answers allow them, so that a brain may be upgraded before its workers.
"""

import base64
import binascii
import re
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Annotated, Any, ClassVar, Final

from edgecache.protocol.fields import FieldReader, Message
from edgecache.protocol.tickets import KEY_ID_BYTES, MAC_KEY_BYTES

KEY_LIMIT: Final = 8
KEY_ID: Final = re.compile(f"[0-9a-f]{{{2 * KEY_ID_BYTES}}}", re.ASCII)
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


def _take_endpoint(fields: FieldReader, name: str) -> str | None:
    return fields.text(name, limit=255, default="") or None


def _read_problem(value: Any) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= PROBLEM_LENGTH else None


@dataclass(frozen=True, slots=True)
class Heartbeat(Message):
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

    incarnation: Annotated[str, partial(FieldReader.text, limit=36)]
    sequence: Annotated[int, FieldReader.integer]
    used_bytes: Annotated[int, FieldReader.integer]
    object_count: Annotated[int, FieldReader.integer]
    capacity_bytes: Annotated[int, partial(FieldReader.integer, minimum=1)]
    evictions: Annotated[int, FieldReader.integer]
    load: Annotated[float, FieldReader.number]
    endpoint: Annotated[str | None, _take_endpoint]
    # A problem that this side does not know is kept unchanged.
    problems: Annotated[
        tuple[str, ...],
        partial(
            FieldReader.values, read=_read_problem, message="must be a word", limit=PROBLEM_LIMIT
        ),
    ] = ()


@dataclass(frozen=True, slots=True)
class TicketKey(Message):
    """A key for the MACs of one node's tickets (32 bytes), and the ``key_id`` of those tickets."""

    kid: str
    key: bytes = field(repr=False)

    def as_json(self) -> dict[str, Any]:
        """Return its JSON; the key as base64."""
        return {"kid": self.kid, "key": base64.b64encode(self.key).decode()}


def _read_key(value: Any) -> TicketKey | None:
    match value:
        case {"kid": str() as kid, "key": str() as text}:
            try:
                raw = base64.b64decode(text, validate=True)
            except (binascii.Error, ValueError):
                return None
            is_right = len(raw) == MAC_KEY_BYTES and KEY_ID.fullmatch(kid) is not None
            return TicketKey(kid, raw) if is_right else None
    return None


@dataclass(frozen=True, slots=True)
class HeartbeatAnswer(Message):
    """What the brain answers.

    now: its clock, Unix seconds. keys: tickets of no other key are valid. status: the node's.
    wants_inventory: send a full one. jobs: how many wait. interval_s: until the next heartbeat.
    """

    ALLOWS_UNKNOWN: ClassVar = True
    now: Annotated[float, partial(FieldReader.number, minimum=1.0)]
    keys: Annotated[
        tuple[TicketKey, ...],
        partial(
            FieldReader.values, read=_read_key, message="must be a kid and its key", limit=KEY_LIMIT
        ),
    ]
    status: Annotated[str, partial(FieldReader.text, limit=32)]
    wants_inventory: Annotated[bool, FieldReader.boolean]
    jobs: Annotated[int, FieldReader.integer]
    interval_s: Annotated[float, partial(FieldReader.number, minimum=0.05, maximum=300.0)]
