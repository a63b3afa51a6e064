"""Receipts: tickets that workers redeem. Each counts once or not at all.

All of a worker's receipts for an hour count together: if the brain accepted only some of a batch,
both sides would have different sums. The answer names each refused ticket and the reason, so that
an honest worker loses that ticket only: it sends the others again.
"""

import uuid
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, LiteralString
from uuid import UUID

from edgecache.brain.core.values import EnvironmentKey
from edgecache.brain.db.database import BrainDatabase, DatabaseTransaction
from edgecache.brain.metering.meters import (
    HOUR_S,
    LINES_LOCK,
    IsCreditable,
    UsageCount,
    UsageKey,
    add_usage,
    hour_of,
    slice_of,
)
from edgecache.brain.nodes.tickets import TicketSigner
from edgecache.protocol.receipts import ReceiptLine, ReceiptsAnswer, RefusedReceipt
from edgecache.protocol.tickets import Ticket, TicketRefused

# Receipts are kept longer than this, so that none counts twice.
OLDEST_S: Final = 30 * 86_400
KEPT_DAYS: Final = 35
# Tolerated difference between a worker's clock and the brain's.
SKEW_S: Final = 5
# Counters of what workers served themselves, beside those of the brains.
DIRECT: Final = uuid.UUID(int=1)

INSERT: Final[LiteralString] = """
    INSERT INTO brain_receipt (ticket_id, node_id, organization_id, environment_pk, bucket_id,
                               sha256, bytes_served, served_at)
    SELECT * FROM unnest(%s::uuid[], %s::uuid[], %s::bigint[], %s::bigint[], %s::bigint[],
                         %s::bytea[], %s::bigint[], %s::timestamptz[])
    ON CONFLICT (ticket_id) DO NOTHING
    RETURNING ticket_id
"""
MEASURE: Final[LiteralString] = """
    INSERT INTO brain_measurement (brain_id, node_id, minute, hits, misses, bytes_served, latencies)
    VALUES (%s, %s, %s, %s, 0, %s, '{}')
    ON CONFLICT (brain_id, node_id, minute) DO UPDATE SET
        hits = brain_measurement.hits + excluded.hits,
        bytes_served = brain_measurement.bytes_served + excluded.bytes_served
"""
# The platform's own checks are not billed. If a check found a copy wrong, reads of it earn nothing,
# neither earlier ones nor those until all brains stopped using it.
CHECKS: Final[LiteralString] = "SELECT id FROM brain_look WHERE id = ANY(%s)"
WRONG_COPIES: Final[LiteralString] = """
    SELECT sha256, max(began_at) + interval '5 minutes' AS until FROM brain_look
    WHERE node_id = %s AND sha256 = ANY(%s) AND outcome = 'wrong' GROUP BY sha256
"""
# A node under suspicion earns nothing by the receipts that it still has, also after its removal.
MAY_EARN: Final[LiteralString] = (
    "SELECT 1 FROM brain_node WHERE id = %s AND status NOT IN ('quarantined', 'removed')"
)


class ReceiptRefusal(StrEnum):
    """Why a receipt does not count: stable, beside the codes of tickets."""

    OTHER_NODE = "receipt_of_another_node"
    NOT_DIRECT = "receipt_not_of_a_direct_read"
    TOO_MUCH = "receipt_exceeds_the_ticket"
    NOT_IN_TIME = "receipt_not_within_the_ticket"
    TOO_OLD = "receipt_too_old"


@dataclass(frozen=True, slots=True)
class RedeemedTicket:
    """A redeemed ticket with what the worker reports."""

    ticket: Ticket
    bytes_served: int
    served_at: datetime


@dataclass(slots=True)
class HourWindow:
    """What a batch claims for one hour. good: each ticket once; refused: lines, with the reason."""

    good: dict[UUID, RedeemedTicket] = field(default_factory=dict)
    refused: list[RefusedReceipt] = field(default_factory=list)


async def redeem(
    database: BrainDatabase,
    signer: TicketSigner,
    node_id: UUID,
    lines: Sequence[ReceiptLine],
    is_creditable: IsCreditable,
    *,
    now: float,
) -> ReceiptsAnswer:
    """Store a batch's receipts, for each hour all or none. Repeating it changes nothing.

    Raises DatabaseUnavailable; some hours may be stored then, and are not counted again.
    """
    windows: dict[int, HourWindow] = defaultdict(HourWindow)
    for place, line in enumerate(lines):
        window = windows[line.served_at // HOUR_S]
        try:
            ticket = signer.verify(line.ticket)
        except TicketRefused as refusal:
            window.refused.append(RefusedReceipt(place, str(refusal.code)))
            continue
        code = _objection(ticket, line, node_id, now=now)
        if code is not None:
            window.refused.append(RefusedReceipt(place, str(code), ticket.id))
        elif ticket.id not in window.good:
            served_at = datetime.fromtimestamp(line.served_at, UTC)
            window.good[ticket.id] = RedeemedTicket(ticket, line.bytes_served, served_at)
    whole = [window.good for window in windows.values() if not window.refused]
    for good in whole:
        await _write(database, node_id, good, is_creditable)
    return ReceiptsAnswer(
        tuple(dict.fromkeys(ticket_id for good in whole for ticket_id in good)),
        tuple(refused for window in windows.values() for refused in window.refused),
    )


def _objection(
    ticket: Ticket, line: ReceiptLine, node_id: UUID, *, now: float
) -> ReceiptRefusal | None:
    if ticket.node_id != node_id:
        return ReceiptRefusal.OTHER_NODE
    if not ticket.is_direct:
        return ReceiptRefusal.NOT_DIRECT
    if line.bytes_served > ticket.length:
        return ReceiptRefusal.TOO_MUCH
    if not ticket.issued_at - SKEW_S <= line.served_at <= ticket.expires_at + SKEW_S:
        return ReceiptRefusal.NOT_IN_TIME
    if now - ticket.issued_at > OLDEST_S:
        return ReceiptRefusal.TOO_OLD
    return None


async def _write(
    database: BrainDatabase,
    node_id: UUID,
    good: dict[UUID, RedeemedTicket],
    is_creditable: IsCreditable,
) -> None:
    async with database.transaction() as connection:
        await connection.run("SELECT pg_advisory_xact_lock(%s)", [LINES_LOCK])
        # One order for all: two batches with the same tickets must not wait for each other.
        rows = [_row(node_id, good[ticket_id]) for ticket_id in sorted(good)]
        fresh = [row.ticket_id for row in await connection.all(INSERT, _columns(rows))]
        checks = {row.id for row in await connection.all(CHECKS, [fresh])}
        counted = [good[one] for one in fresh if one not in checks]
        await _count(connection, node_id, counted, is_creditable)


async def _count(
    connection: DatabaseTransaction,
    node_id: UUID,
    fresh: Sequence[RedeemedTicket],
    is_creditable: IsCreditable,
) -> None:
    """Add up what counts for the first time: usage by bucket and hour, and measurements."""
    may_earn = await connection.one(MAY_EARN, [node_id]) is not None
    usage: dict[datetime, dict[UsageKey, UsageCount]] = defaultdict(dict)
    slices: dict[datetime, UsageCount] = defaultdict(UsageCount)
    copies = await connection.all(WRONG_COPIES, [node_id, [one.ticket.sha256 for one in fresh]])
    wrong_until = {row.sha256: row.until for row in copies}
    for one in fresh:
        ticket, served_at = one.ticket, one.served_at.timestamp()
        until = wrong_until.get(ticket.sha256)
        tenant = EnvironmentKey(ticket.organization_id, ticket.environment_pk)
        client, size = ticket.client_prefix, one.bytes_served
        read = (tenant, ticket.bucket_id, node_id, client, size, served_at)
        is_right = until is None or one.served_at > until
        key = UsageKey(
            ticket.organization_id,
            ticket.environment_pk,
            ticket.bucket_id,
            node_id,
            is_creditable=may_earn and is_creditable(*read) and is_right,
        )
        for count in (
            usage[hour_of(served_at)].setdefault(key, UsageCount()),
            slices[slice_of(served_at)],
        ):
            count.add(is_hit=True, bytes_served=one.bytes_served)
    for hour, counts in sorted(usage.items()):
        await add_usage(connection, hour, counts)
    for moment, count in sorted(slices.items()):
        for name in (None, node_id):
            await connection.run(MEASURE, [DIRECT, name, moment, count.hits, count.bytes_served])


def _row(node_id: UUID, one: RedeemedTicket) -> tuple[Any, ...]:
    ticket = one.ticket
    return (
        ticket.id,
        node_id,
        ticket.organization_id,
        ticket.environment_pk,
        ticket.bucket_id,
        ticket.sha256,
        one.bytes_served,
        one.served_at,
    )


def _columns(rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]
