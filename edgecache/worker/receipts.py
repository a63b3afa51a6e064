"""Receipts: what clients read themselves, for each ticket, until the brain has accepted it.

A ticket counts once, so its receipt is final when it is sent: after the ticket has expired and its
last response has ended. Reads are counted in memory and written every second: a worker that is
killed loses at most the last second.
"""

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from edgecache.protocol.receipts import ReceiptLine
from edgecache.protocol.tickets import LEEWAY_S, REPLAY_FACTOR, Refusal, Ticket, TicketRefused
from edgecache.worker.store.inventory import InventoryReader

# More than the connections of a worker use until the next write.
OPEN_LIMIT: Final = 20_000
# One statement for many rows: between two of them a busy event loop may keep the interpreter to
# itself for milliseconds, while the store's lock is held.
WRITE_STEP: Final = 1000
_COLUMNS: Final = ("ticket_id", "ticket", "expires_at", "cap", "reserved", "served", "started_at")
_VALUES: Final = ", ".join(f"json_extract(value, '$[{place}]')" for place in range(len(_COLUMNS)))
_UPSERT: Final = (
    f"INSERT INTO receipts ({', '.join(_COLUMNS)}) SELECT {_VALUES} FROM json_each(?) WHERE true"  # noqa: S608 - constants
    " ON CONFLICT (ticket_id) DO UPDATE"
    " SET reserved = excluded.reserved, served = excluded.served"
)
_DUE: Final = (
    "SELECT json_group_array(json_array(ticket_id, ticket, served, started_at)) FROM"
    " (SELECT * FROM receipts WHERE expires_at < ?"
    " AND ticket_id NOT IN (SELECT value FROM json_each(?)) ORDER BY expires_at LIMIT ?)"
)
_FORGET: Final = "DELETE FROM receipts WHERE ticket_id IN (SELECT value FROM json_each(?))"

Row = tuple[str, str, int, int, int, int, int]


class TooManyTickets(Exception):
    """No further ticket is taken until the next write."""


@dataclass(slots=True)
class TicketUse:
    """What one ticket was used for.

    reserved: bytes of responses when they began.
    running: the number of running responses.
    """

    ticket: Ticket
    text: str
    reserved: int
    served: int
    started_at: int
    running: int = 0
    is_written: bool = False

    def row(self) -> Row:
        return (
            self.ticket.id.hex,
            self.text,
            self.ticket.expires_at,
            self.ticket.length,
            self.reserved,
            self.served,
            self.started_at,
        )


class TicketUses:
    """The tickets in use. For the event loop's thread; only ``write`` is for others."""

    def __init__(self, reader: InventoryReader) -> None:
        self._reader = reader
        self._uses: dict[UUID, TicketUse] = {}

    def __len__(self) -> int:
        """Return the number of tickets with unwritten or running use."""
        return len(self._uses)

    def begin(self, ticket: Ticket, text: str, length: int, *, now: float) -> TicketUse:
        """Count a response of this size that begins. now: the brain's Unix seconds.

        Raises TicketRefused when the ticket was used for too much (replays are for retries only),
        and TooManyTickets.
        """
        use = self._uses.get(ticket.id) or self._load(ticket, text, int(now))
        if use.reserved + length > ticket.length * REPLAY_FACTOR:
            raise TicketRefused(Refusal.USED_UP)
        if ticket.id not in self._uses:
            if len(self._uses) >= OPEN_LIMIT:
                raise TooManyTickets
            self._uses[ticket.id] = use
        use.reserved += length
        use.running += 1
        use.is_written = False
        return use

    def end(self, use: TicketUse, served: int) -> None:
        """Count what was sent of an answer. A ticket never counts for more than its cap."""
        use.running -= 1
        use.served = min(use.ticket.length, use.served + served)
        use.is_written = False

    def unwritten(self) -> list[TicketUse]:
        uses = [use for use in self._uses.values() if not use.is_written]
        for use in uses:
            use.is_written = True
        return uses

    def written(self, uses: Iterable[TicketUse]) -> None:
        """Forget what was written and is not running."""
        for use in uses:
            if use.is_written and use.running == 0:
                self._uses.pop(use.ticket.id, None)

    def not_written(self, uses: Iterable[TicketUse]) -> None:
        """Take it back: writing failed."""
        for use in uses:
            use.is_written = False

    def open(self) -> list[UUID]:
        """Return the tickets whose count may still change."""
        return list(self._uses)

    def _load(self, ticket: Ticket, text: str, now: int) -> TicketUse:
        reserved, served, started_at = self._reader.receipt(ticket.id.hex) or (0, 0, now)
        return TicketUse(ticket, text, reserved, served, started_at)


def write(db: sqlite3.Connection, rows: list[Row]) -> None:
    """Write counts of tickets, inside the caller's transaction."""
    for first in range(0, len(rows), WRITE_STEP):
        db.execute(_UPSERT, (json.dumps(rows[first : first + WRITE_STEP]),))


def due(
    db: sqlite3.Connection, *, now: float, limit: int, without: Iterable[UUID] = ()
) -> list[tuple[UUID, ReceiptLine]]:
    """Return the receipts of expired tickets, oldest first.

    now: the brain's. without: tickets whose count may still change.
    """
    skipped = json.dumps([ticket_id.hex for ticket_id in without])
    (found,) = db.execute(_DUE, (int(now) - LEEWAY_S, skipped, limit)).fetchone()
    return [
        (UUID(ticket_id), ReceiptLine(ticket, served, started_at))
        for ticket_id, ticket, served, started_at in json.loads(found)
    ]


def forget(db: sqlite3.Connection, ticket_ids: Iterable[UUID]) -> None:
    """Drop receipts that the brain has answered for."""
    db.execute(_FORGET, (json.dumps([ticket_id.hex for ticket_id in ticket_ids]),))
