"""Inventories of a worker: complete, and then as changes."""

from typing import Annotated, Final

from msgspec import Meta

from edgecache.protocol.fields import NO_NUL, Answer, Count, Message, Sha256
from edgecache.protocol.names import INVENTORY_PAGE

UNKNOWN_LIMIT: Final = 10 * INVENTORY_PAGE


class HeldBlob(Message, frozen=True, array_like=True):
    """A blob that a worker holds; on the way a pair."""

    sha256: Sha256
    size: Count


class Inventory(Message, frozen=True):
    """What a worker holds (full), or what has changed since its last answered report.

    page: from 0.
    last: a full inventory is complete with this page. Only then does the brain know that the worker
    lacks the blobs that no page named. A change may be repeated; a blob's latest one wins.
    """

    incarnation: Annotated[str, Meta(max_length=36, pattern=NO_NUL)]
    sequence: Count
    full: bool
    added: Annotated[tuple[HeldBlob, ...], Meta(max_length=INVENTORY_PAGE)] = ()
    removed: Annotated[tuple[Sha256, ...], Meta(max_length=INVENTORY_PAGE)] = ()
    page: Count = 0
    last: bool = True


class InventoryAnswer(Answer, frozen=True):
    """Blobs of the inventory that are not needed: the worker deletes them."""

    unknown: Annotated[tuple[Sha256, ...], Meta(max_length=UNKNOWN_LIMIT)] = ()
