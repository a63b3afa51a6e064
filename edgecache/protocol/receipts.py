"""Receipts of direct-mode tickets: what a worker claims, and what of it counts.

Receipts of one hour count together or not at all: one that is refused keeps the others of its hour
from counting until they are sent without it.
"""

from dataclasses import dataclass
from typing import Final, Self
from uuid import UUID

from edgecache.protocol.fields import Fields, Message, read_uuid
from edgecache.protocol.names import RECEIPT_BATCH

TICKET_TEXT_LIMIT: Final = 512
UNREAD: Final = UUID(int=0)


@dataclass(frozen=True, slots=True)
class ReceiptLine(Message):
    """A direct-mode ticket that was redeemed, once and for all.

    ticket: its text, signature included. bytes_served: of all reads with it, at most its length.
    served_at: Unix seconds of the first read, by the brain's clock as the worker knows it.
    """

    ticket: str
    bytes_served: int
    served_at: int

    @classmethod
    def read(cls, fields: Fields) -> Self:
        """Read it strictly."""
        line = cls(
            ticket=fields.text("ticket", limit=TICKET_TEXT_LIMIT),
            bytes_served=fields.integer("bytes_served"),
            served_at=fields.integer("served_at"),
        )
        fields.refuse_unknown()
        return line


@dataclass(frozen=True, slots=True)
class Receipts(Message):
    """A batch of receipts; sent again until it is answered, so repeating it must change nothing."""

    receipts: tuple[ReceiptLine, ...]

    @classmethod
    def read(cls, fields: Fields) -> Self:
        """Read it strictly."""
        message = cls(fields.objects("receipts", ReceiptLine.read, limit=RECEIPT_BATCH))
        fields.finish(allow_unknown=False)
        return message


@dataclass(frozen=True, slots=True)
class RefusedReceipt(Message):
    """A ticket that never counts, and why; the worker forgets it.

    place: of its line in the batch, from 0 on. id: the ticket's, all zeros if it could not be read.
    """

    place: int
    code: str
    id: UUID = UNREAD

    @classmethod
    def read(cls, fields: Fields) -> Self:
        """Read it."""
        return cls(
            place=fields.integer("place", maximum=RECEIPT_BATCH - 1),
            code=fields.text("code", limit=64),
            id=fields.uuid("id"),
        )


@dataclass(frozen=True, slots=True)
class ReceiptsAnswer(Message):
    """Ids of tickets that count (now, or since an earlier batch), and lines that never will.

    What is in neither was right, and does not count as its hour has a line that is refused: the
    worker sends it again without that one.
    """

    accepted: tuple[UUID, ...]
    refused: tuple[RefusedReceipt, ...] = ()

    @classmethod
    def read(cls, fields: Fields) -> Self:
        """Read it strictly."""
        message = cls(
            accepted=fields.values("accepted", read_uuid, "must be a UUID", limit=RECEIPT_BATCH),
            refused=fields.objects("refused", RefusedReceipt.read, limit=RECEIPT_BATCH),
        )
        fields.finish(allow_unknown=True)
        return message
