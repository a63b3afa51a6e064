"""Inventories of a worker: complete, and then as changes."""

from dataclasses import dataclass, replace
from typing import Any, Final, Self

from edgecache.protocol.fields import INTEGER_LIMIT, Fields, Message, read_sha256
from edgecache.protocol.names import INVENTORY_PAGE

UNKNOWN_LIMIT: Final = 10 * INVENTORY_PAGE


@dataclass(frozen=True, slots=True)
class HeldBlob:
    """A blob that a worker holds."""

    sha256: bytes
    size: int


@dataclass(frozen=True, slots=True)
class Inventory(Message):
    """What a worker holds (full), or what came and went since the last one that was answered.

    page: from 0; last: whether a full inventory is complete with it. Only then the brain knows that
    the worker lacks what no page named. A change may come twice; a later one of a blob wins.
    """

    incarnation: str
    sequence: int
    full: bool
    added: tuple[HeldBlob, ...] = ()
    removed: tuple[bytes, ...] = ()
    page: int = 0
    last: bool = True

    def as_json(self) -> dict[str, Any]:
        """Return its JSON; ``added`` as pairs."""
        added = [[held.sha256.hex(), held.size] for held in self.added]
        return Message.as_json(replace(self, added=())) | {"added": added}

    @classmethod
    def read(cls, fields: Fields) -> Self:
        """Read it strictly."""
        message = cls(
            incarnation=fields.text("incarnation", limit=36),
            sequence=fields.integer("sequence"),
            full=fields.boolean("full"),
            added=fields.values(
                "added", _read_held, "must be a hash and a size", limit=INVENTORY_PAGE
            ),
            removed=fields.values("removed", read_sha256, "must be a hash", limit=INVENTORY_PAGE),
            page=fields.integer("page"),
            last=fields.boolean("last"),
        )
        fields.finish(allow_unknown=False)
        return message


@dataclass(frozen=True, slots=True)
class InventoryAnswer(Message):
    """Blobs of the inventory that are not needed: the worker deletes them."""

    unknown: tuple[bytes, ...] = ()

    @classmethod
    def read(cls, fields: Fields) -> Self:
        """Read it strictly."""
        message = cls(fields.values("unknown", read_sha256, "must be a hash", limit=UNKNOWN_LIMIT))
        fields.finish(allow_unknown=True)
        return message


def _read_held(value: Any) -> HeldBlob | None:
    match value:
        case [str() as text, int() as size] if size >= 0 and type(size) is int:
            sha256 = read_sha256(text)
            return HeldBlob(sha256, size) if sha256 is not None and size < INTEGER_LIMIT else None
    return None
