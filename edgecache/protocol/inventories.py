"""Inventories of a worker: complete, and then as changes."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Final

from edgecache.protocol.fields import INTEGER_LIMIT, FieldReader, Message, read_sha256
from edgecache.protocol.names import INVENTORY_PAGE

UNKNOWN_LIMIT: Final = 10 * INVENTORY_PAGE


@dataclass(frozen=True, slots=True)
class HeldBlob:
    """A blob that a worker holds."""

    sha256: bytes
    size: int


def _read_held(value: Any) -> HeldBlob | None:
    match value:
        case [str() as text, int() as size] if size >= 0 and type(size) is int:
            sha256 = read_sha256(text)
            return HeldBlob(sha256, size) if sha256 is not None and size < INTEGER_LIMIT else None
    return None


_hashes: Final = partial(FieldReader.values, read=read_sha256, message="must be a hash")


@dataclass(frozen=True, slots=True)
class Inventory(Message):
    """What a worker holds (full), or what has changed since its last answered report.

    page: from 0.
    last: a full inventory is complete with this page. Only then does the brain know that the worker
    lacks the blobs that no page named. A change may be repeated; a blob's latest one wins.
    """

    incarnation: Annotated[str, partial(FieldReader.text, limit=36)]
    sequence: Annotated[int, FieldReader.integer]
    full: Annotated[bool, FieldReader.boolean]
    added: Annotated[
        tuple[HeldBlob, ...],
        partial(
            FieldReader.values,
            read=_read_held,
            message="must be a hash and a size",
            limit=INVENTORY_PAGE,
        ),
    ] = ()
    removed: Annotated[tuple[bytes, ...], partial(_hashes, limit=INVENTORY_PAGE)] = ()
    page: Annotated[int, FieldReader.integer] = 0
    last: Annotated[bool, FieldReader.boolean] = True

    def as_json(self) -> dict[str, Any]:
        """Return its JSON; ``added`` as pairs."""
        added = [[held.sha256.hex(), held.size] for held in self.added]
        return Message.as_json(replace(self, added=())) | {"added": added}


@dataclass(frozen=True, slots=True)
class InventoryAnswer(Message):
    """Blobs of the inventory that are not needed: the worker deletes them."""

    ALLOWS_UNKNOWN: ClassVar = True
    unknown: Annotated[tuple[bytes, ...], partial(_hashes, limit=UNKNOWN_LIMIT)] = ()
