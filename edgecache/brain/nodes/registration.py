"""The life of a node: registration, approval, quarantine, drain, removal."""

import secrets
from datetime import UTC, datetime
from typing import Annotated, Final, LiteralString
from uuid import UUID

import structlog
from msgspec import Meta

from common.ids import uuid7
from edgecache.brain.core.creator import CreatorMessage
from edgecache.brain.core.errors import EndpointTaken, Invalid, NodeNotFound, StateConflict
from edgecache.brain.db.coherence import AnnouncingTransaction, Coherence
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.nodes import node_rows
from edgecache.brain.nodes.endpoints import normalize
from edgecache.brain.nodes.node_rows import NodeRow
from edgecache.protocol.credentials import secret_hash
from edgecache.protocol.fields import FieldError, RowId, Text
from edgecache.protocol.names import CAPACITY_LIMIT_BYTES, parse_label

log = structlog.get_logger(__name__)

SECRET_BYTES: Final = 32
# Pending nodes of an organization; every brain reads all nodes every two seconds.
PENDING_LIMIT: Final = 100
UNPROVED_DAYS: Final = 30

COUNT_PENDING: Final[LiteralString] = (
    "SELECT count(*) AS pending FROM brain_node"
    " WHERE organization_id = %s AND status = 'pending' AND removed_at IS NULL"
)
REMOVE_UNPROVED: Final[LiteralString] = (
    "UPDATE brain_node SET status = 'removed', status_reason = 'unproved', status_at = now(),"
    " removed_at = now()"
    " WHERE organization_id IS NOT NULL AND status = 'pending' AND proved_at IS NULL"
    " AND created_at < now() - make_interval(days => %s)"
)


class NodeRequest(CreatorMessage, frozen=True, kw_only=True):
    """A node to register. Without an organization it is the platform's."""

    endpoint: Text
    region: Text
    capacity_bytes: Annotated[int, Meta(ge=1, le=CAPACITY_LIMIT_BYTES)]
    organization_id: RowId | None = None
    is_trusted: bool = False


async def register(
    coherence: Coherence, body: NodeRequest, *, is_production: bool
) -> tuple[NodeRow, str]:
    """Create a node; return it and its credential, which is shown once and not stored.

    is_production: requires a public endpoint of organizations' nodes. Raises Invalid
    with the field, EndpointTaken, StateConflict for too many that wait for approval,
    DatabaseUnavailable.
    """
    secret = secrets.token_urlsafe(SECRET_BYTES)
    row = _read(body, secret_hash(secret), is_production=is_production)
    async with coherence.transaction(wait_for_acks=False) as change:
        if row.status == "pending":
            await _check_pending(change, row.organization_id)
        is_new = await node_rows.insert(change, row)
    if not is_new:
        raise EndpointTaken
    log.info("node_registered", node_id=str(row.id), region=row.region, status=row.status)
    return row, secret


async def _check_pending(change: AnnouncingTransaction, organization_id: int | None) -> None:
    # Requests at the same moment may pass it by their number.
    found = await change.one(COUNT_PENDING, [organization_id])
    if found is not None and found.pending >= PENDING_LIMIT:
        raise StateConflict(
            f"An organization has at most {PENDING_LIMIT} nodes that wait for approval."
        )


def _read(body: NodeRequest, credential: bytes, *, is_production: bool) -> NodeRow:
    if parse_label(body.region) is None:
        raise Invalid([FieldError("region", "must be like eu-central: a-z, 0-9, hyphens")])
    endpoint = normalize(body.endpoint, is_trusted=body.is_trusted, is_production=is_production)
    return NodeRow(
        id=uuid7(),
        organization_id=body.organization_id,
        endpoint=endpoint,
        region=body.region,
        capacity_bytes=body.capacity_bytes,
        # Others wait for their proof and for staff's approval.
        status="active" if body.is_trusted else "pending",
        secret_hash=credential,
        created_at=datetime.now(UTC),
        created_by=body.created_by,
        creator_id=body.creator_id,
    )


async def decide(coherence: Coherence, node_id: UUID, status: str, *, reason: str = "") -> NodeRow:
    """Make a node active, draining or quarantined.

    A pending node becomes active only with a proven endpoint. A draining one gets no new objects,
    and its objects are replicated elsewhere; a quarantined one is not used.

    Raises NodeNotFound, StateConflict.
    """
    async with coherence.transaction() as change:
        row = await _locked(change, node_id)
        if status == "active" and row.status == "pending" and row.proved_at is None:
            raise StateConflict("The node has not proved its endpoint yet.")
        if row.status != status:
            if not await node_rows.set_status(change, node_id, status, reason=reason):
                raise StateConflict(f"The node is {row.status}.")
            log.info("node_status", node_id=str(node_id), status=status, reason=reason)
        return await _locked(change, node_id)


async def remove(coherence: Coherence, node_id: UUID) -> None:
    """Remove a node: it counts no longer, drains, and is then gone. Raises NodeNotFound."""
    async with coherence.transaction() as change:
        row = await _locked(change, node_id)
        # A node from which no objects can be replicated does not need to drain.
        status = "draining" if row.status in {"active", "draining"} else "removed"
        await change.run(
            "UPDATE brain_node SET status = %s, status_reason = 'removal', removed_at = now()"
            " WHERE id = %s",
            [status, node_id],
        )
        change.announce(node_rows.TOPIC, node_id.hex)
    log.info("node_removal_asked", node_id=str(node_id), status=status)


async def remove_unproved(database: BrainDatabase) -> None:
    """Remove organizations' nodes that have not proved their endpoint in 30 days.

    Their endpoints are free again. Raises DatabaseUnavailable.
    """
    await database.run(REMOVE_UNPROVED, [UNPROVED_DAYS])


async def _locked(change: AnnouncingTransaction, node_id: UUID) -> NodeRow:
    row = await node_rows.read_one(change, node_id, locks=True)
    if row is None or row.removed_at is not None:
        raise NodeNotFound
    return row
