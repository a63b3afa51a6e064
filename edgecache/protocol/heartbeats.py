"""A worker's heartbeat and what the brain answers.

How all messages go: ``as_json`` gives what ``json.dumps`` writes; ``read`` takes what
``fields.parse`` gave and raises MalformedMessage with the wrong fields' names. Requests of a worker
refuse unknown fields; answers allow them, so that a brain may be upgraded before its workers.
"""

import base64
import binascii
import re
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Final, Self

from edgecache.protocol.fields import Fields, Message
from edgecache.protocol.tickets import KEY_ID_BYTES, MAC_KEY_BYTES

KEY_LIMIT: Final = 8
KEY_ID: Final = re.compile(f"[0-9a-f]{{{2 * KEY_ID_BYTES}}}", re.ASCII)
PROBLEM_LIMIT: Final = 16
PROBLEM_LENGTH: Final = 32


class Problem(StrEnum):
    """What a worker says about itself with a heartbeat, while it lasts.

    draining: asked to stop; takes nothing new. disk_full: the last write found no space.
    disk_failing: reads or writes failed otherwise. corruption: a file did not hash to its name
    (and was removed).
    """

    DRAINING = "draining"
    DISK_FULL = "disk_full"
    DISK_FAILING = "disk_failing"
    CORRUPTION = "corruption"


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A worker's state.

    incarnation: made new at each start. sequence: rises with each heartbeat and inventory of an
    incarnation, which a worker sends one after another: one that is not above the last is late (its
    sender gave up on it, and says it all again) and must change nothing.
    used_bytes, capacity_bytes: of the disk, whole blocks. evictions: since the store was made.
    load: 0 is idle, 1 is all it can. endpoint: where it is reached, None when unknown.
    """

    incarnation: str
    sequence: int
    used_bytes: int
    object_count: int
    capacity_bytes: int
    evictions: int
    load: float
    endpoint: str | None
    problems: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        message = asdict(self)
        message["problems"] = list(self.problems)
        if self.endpoint is None:
            del message["endpoint"]
        return message

    @classmethod
    def read(cls, fields: Fields) -> Self:
        """Read it strictly; a problem that this side does not know is kept as it is."""
        message = cls(
            incarnation=fields.text("incarnation", limit=36),
            sequence=fields.integer("sequence"),
            used_bytes=fields.integer("used_bytes"),
            object_count=fields.integer("object_count"),
            capacity_bytes=fields.integer("capacity_bytes", minimum=1),
            evictions=fields.integer("evictions"),
            load=fields.number("load"),
            endpoint=fields.text("endpoint", limit=255, default="") or None,
            problems=fields.values(
                "problems", _read_problem, "must be a word", limit=PROBLEM_LIMIT
            ),
        )
        fields.finish(allow_unknown=False)
        return message


@dataclass(frozen=True, slots=True)
class TicketKey(Message):
    """A key for the MACs of one node's tickets (32 bytes), and the ``key_id`` of those tickets."""

    kid: str
    key: bytes = field(repr=False)

    def as_json(self) -> dict[str, Any]:
        """Return its JSON; the key as base64."""
        return {"kid": self.kid, "key": base64.b64encode(self.key).decode()}


@dataclass(frozen=True, slots=True)
class HeartbeatAnswer(Message):
    """What the brain answers.

    now: its clock, Unix seconds. keys: tickets of no other key are valid. status: the node's.
    wants_inventory: send a full one. jobs: how many wait. interval_s: until the next heartbeat.
    """

    now: float
    keys: tuple[TicketKey, ...]
    status: str
    wants_inventory: bool
    jobs: int
    interval_s: float

    @classmethod
    def read(cls, fields: Fields) -> Self:
        """Read it strictly."""
        message = cls(
            now=fields.number("now", minimum=1.0),
            keys=fields.values("keys", _read_key, "must be a kid and its key", limit=KEY_LIMIT),
            status=fields.text("status", limit=32),
            wants_inventory=fields.boolean("wants_inventory"),
            jobs=fields.integer("jobs"),
            interval_s=fields.number("interval_s", minimum=0.05, maximum=300.0),
        )
        fields.finish(allow_unknown=True)
        return message


def _read_problem(value: Any) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= PROBLEM_LENGTH else None


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
