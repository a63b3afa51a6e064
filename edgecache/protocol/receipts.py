"""Receipts of direct-mode tickets: what a worker reports, and what of it counts.

Receipts of one hour count together or not at all: if one is refused, the others of its hour count
when they are sent without it.
"""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar, Final
from uuid import UUID

from edgecache.protocol.fields import FieldReader, Message, read_uuid
from edgecache.protocol.names import RECEIPT_BATCH

TICKET_TEXT_LIMIT: Final = 512
UNREAD: Final = UUID(int=0)


@dataclass(frozen=True, slots=True)
class ReceiptLine(Message):
    """A direct-mode ticket that was redeemed; its line is final.

    ticket: its text, signature included.
    bytes_served: of all reads with it, at most its length.
    served_at: Unix seconds of the first read, by the brain's clock as the worker knows it.
    """

    ticket: Annotated[str, partial(FieldReader.text, limit=TICKET_TEXT_LIMIT)]
    bytes_served: Annotated[int, FieldReader.integer]
    served_at: Annotated[int, FieldReader.integer]


@dataclass(frozen=True, slots=True)
class Receipts(Message):
    """A batch of receipts; sent again until it is answered, so repeating it must change nothing."""

    receipts: Annotated[
        tuple[ReceiptLine, ...],
        partial(FieldReader.objects, read=ReceiptLine.take, limit=RECEIPT_BATCH),
    ]


@dataclass(frozen=True, slots=True)
class RefusedReceipt(Message):
    """A ticket that never counts, and why; the worker forgets it.

    place: of its line in the batch, from 0 on. id: the ticket's, all zeros if it could not be read.
    """

    ALLOWS_UNKNOWN: ClassVar = True
    place: Annotated[int, partial(FieldReader.integer, maximum=RECEIPT_BATCH - 1)]
    code: Annotated[str, partial(FieldReader.text, limit=64)]
    id: Annotated[UUID, FieldReader.uuid] = UNREAD


@dataclass(frozen=True, slots=True)
class ReceiptsAnswer(Message):
    """Ids of tickets that count (now, or since an earlier batch), and refused lines.

    Tickets in neither were correct, but do not count because a line of their hour was refused: the
    worker sends them again without that line.
    """

    ALLOWS_UNKNOWN: ClassVar = True
    accepted: Annotated[
        tuple[UUID, ...],
        partial(FieldReader.values, read=read_uuid, message="must be a UUID", limit=RECEIPT_BATCH),
    ]
    refused: Annotated[
        tuple[RefusedReceipt, ...],
        partial(FieldReader.objects, read=RefusedReceipt.take, limit=RECEIPT_BATCH),
    ] = ()
