"""The life of a node: registration, approval, quarantine, drain, removal."""

import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

import structlog

from edgecache.brain.directory.coherence import Change, Coherence
from edgecache.brain.errors import Invalid
from edgecache.brain.json_errors import EndpointTaken, NodeNotFound, StateConflict
from edgecache.brain.nodes import rows as node_rows
from edgecache.brain.nodes.endpoints import LENGTH_LIMIT, normalize
from edgecache.brain.nodes.rows import NodeRow
from edgecache.protocol.credentials import secret_hash
from edgecache.protocol.fields import Fields
from edgecache.protocol.names import CAPACITY_LIMIT_BYTES, parse_label
from platform_site.lib.ids import uuid7

log = structlog.get_logger(__name__)

SECRET_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Registration:
    """A request to register a node. organization_id: None is the platform.

    is_trusted: active at once; others wait for their proof and for staff's approval.
    """

    endpoint: str
    region: str
    capacity_bytes: int
    organization_id: int | None
    is_trusted: bool


@dataclass(frozen=True, slots=True)
class RegisteredNode:
    """A new node and its credential, which is shown once and not stored."""

    row: NodeRow
    secret: str = field(repr=False)


def read(body: Fields, *, is_production: bool) -> Registration:
    """Read a registration. Raises MalformedMessage with every wrong field."""
    region = body.converted("region", parse_label, "must be like eu-central: a-z, 0-9, hyphens", "")
    capacity_bytes = body.integer("capacity_bytes", minimum=1, maximum=CAPACITY_LIMIT_BYTES)
    is_owned = body.is_given("organization_id")
    organization_id = body.integer("organization_id", minimum=1) if is_owned else None
    is_trusted = body.boolean("is_trusted", default=False)
    endpoint = body.text("endpoint", limit=LENGTH_LIMIT)
    if endpoint:
        try:
            endpoint = normalize(endpoint, is_trusted=is_trusted, is_production=is_production)
        except Invalid as exc:
            body.errors += exc.errors
    body.finish()
    return Registration(endpoint, region, capacity_bytes, organization_id, is_trusted)


async def register(coherence: Coherence, wanted: Registration) -> RegisteredNode:
    """Create the node. Raises EndpointTaken, DatabaseUnavailable."""
    secret = secrets.token_urlsafe(SECRET_BYTES)
    row = NodeRow(
        id=uuid7(),
        organization_id=wanted.organization_id,
        endpoint=wanted.endpoint,
        region=wanted.region,
        capacity_bytes=wanted.capacity_bytes,
        status="active" if wanted.is_trusted else "pending",
        secret_hash=secret_hash(secret),
        created_at=datetime.now(UTC),
    )
    async with coherence.change(waits=False) as change:
        is_new = await node_rows.insert(change, row)
    if not is_new:
        raise EndpointTaken
    log.info("node_registered", node_id=str(row.id), region=row.region, status=row.status)
    return RegisteredNode(row, secret)


async def approve(coherence: Coherence, node_id: UUID) -> NodeRow:
    """Make a node active: a pending one with a proved endpoint, or a quarantined one.

    Raises NodeNotFound, StateConflict.
    """
    async with coherence.change() as change:
        row = await _locked(change, node_id)
        if row.status == "pending" and row.proved_at is None:
            raise StateConflict("The node has not proved its endpoint yet.")
        await _decide(change, row, "active", only_from=("pending", "quarantined", "draining"))
        return await _locked(change, node_id)


async def quarantine(coherence: Coherence, node_id: UUID, *, reason: str) -> NodeRow:
    """Ask a node for nothing any more. Raises NodeNotFound, StateConflict."""
    async with coherence.change() as change:
        row = await _locked(change, node_id)
        states = ("pending", "active", "draining")
        await _decide(change, row, "quarantined", reason=reason, only_from=states)
        return await _locked(change, node_id)


async def drain(coherence: Coherence, node_id: UUID) -> NodeRow:
    """Store nothing new on a node, and replicate what it holds elsewhere.

    Raises NodeNotFound, StateConflict.
    """
    async with coherence.change() as change:
        row = await _locked(change, node_id)
        await _decide(change, row, "draining", only_from=("active",))
        return await _locked(change, node_id)


async def remove(coherence: Coherence, node_id: UUID) -> None:
    """Remove a node: it counts no longer, drains, and is then gone. Raises NodeNotFound."""
    async with coherence.change() as change:
        row = await _locked(change, node_id)
        # A node whose objects cannot be replicated from it need not drain.
        status = "draining" if row.status in {"active", "draining"} else "removed"
        await change.run(
            "UPDATE brain_node SET status = %s, status_reason = 'removal', removed_at = now()"
            " WHERE id = %s",
            [status, node_id],
        )
        change.announce(node_rows.TOPIC, node_id.hex)
    log.info("node_removal_asked", node_id=str(node_id), status=status)


async def _locked(change: Change, node_id: UUID) -> NodeRow:
    row = await node_rows.read_one(change, node_id, locks=True)
    if row is None or row.removed_at is not None:
        raise NodeNotFound
    return row


async def _decide(
    change: Change,
    row: NodeRow,
    status: str,
    *,
    only_from: tuple[str, ...],
    reason: str = "",
) -> None:
    if row.status == status:
        return
    if not await node_rows.set_status(change, row.id, status, reason=reason, only_from=only_from):
        raise StateConflict(f"The node is {row.status}.")
    log.info("node_status", node_id=str(row.id), status=status, reason=reason)
