"""Rows of nodes, as the registry reads them."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from edgecache.brain.nodes.node_rows import NodeRow


def node(number: int, **changes: object) -> NodeRow:
    """Return an empty platform node in a region of its own."""
    made = NodeRow(
        id=UUID(int=number),
        organization_id=None,
        endpoint=f"http://node{number}:9100",
        region=f"region-{number}",
        capacity_bytes=10 * 2**30,
        status="active",
        secret_hash=b"",
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    return replace(made, **changes)  # type: ignore[arg-type]  # the tests' own values
