"""Receipts of direct-mode tickets: what a worker reports, and what of it counts.

Receipts of one hour count together or not at all: if one is refused, the others of its hour count
when they are sent without it.
"""

from typing import Annotated, Final
from uuid import UUID

from msgspec import Meta

from edgecache.protocol.fields import NO_NUL, Answer, Count, Message
from edgecache.protocol.names import RECEIPT_BATCH

TICKET_TEXT_LIMIT: Final = 512
UNREAD: Final = UUID(int=0)


class ReceiptLine(Message, frozen=True):
    """A direct-mode ticket that was redeemed; its line is final.

    ticket: its text, signature included.
    bytes_served: of all reads with it, at most its length.
    served_at: Unix seconds of the first read, by the brain's clock as the worker knows it.
    """

    ticket: Annotated[str, Meta(max_length=TICKET_TEXT_LIMIT, pattern=NO_NUL)]
    bytes_served: Count
    served_at: Count


class Receipts(Message, frozen=True):
    """A batch of receipts; sent again until it is answered, so repeating it must change nothing."""

    receipts: Annotated[tuple[ReceiptLine, ...], Meta(max_length=RECEIPT_BATCH)]


class RefusedReceipt(Answer, frozen=True):
    """A ticket that never counts, and why; the worker forgets it.

    place: of its line in the batch, from 0 on. id: the ticket's, all zeros if it could not be read.
    """

    place: Annotated[int, Meta(ge=0, lt=RECEIPT_BATCH)]
    code: Annotated[str, Meta(max_length=64)]
    id: UUID = UNREAD


class ReceiptsAnswer(Answer, frozen=True):
    """Ids of tickets that count (now, or since an earlier batch), and refused lines.

    Tickets in neither were correct, but do not count because a line of their hour was refused: the
    worker sends them again without that line.
    """

    accepted: Annotated[tuple[UUID, ...], Meta(max_length=RECEIPT_BATCH)]
    refused: Annotated[tuple[RefusedReceipt, ...], Meta(max_length=RECEIPT_BATCH)] = ()
