"""Usage lines as the brain sends them, and views of the ledger."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from billing import ledger
from billing.models.ledger import AccountKind
from billing.usage import usage_import

NOW = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)
HOUR = NOW.replace(minute=0)
NODE = UUID(int=77)
# Alice and Charlie consume, Olga operates a node.
ALICE, CHARLIE, OLGA = 1, 3, 9
SUMMED = ("hits", "misses", "bytes_served", "storage_byte_hours")


def line(organization_id: int = ALICE, **fields: Any) -> dict[str, Any]:
    """Return a line of the brain, by default of Alice through Olga's node."""
    return {
        "line_id": str(uuid4()),
        "organization_id": organization_id,
        "environment_pk": 11,
        "bucket_id": 5,
        "bucket_name": "assets",
        "node_id": str(NODE),
        "operator_id": OLGA,
        "is_creditable": True,
        "used_at": HOUR.isoformat(),
        "hits": 0,
        "misses": 0,
        "bytes_served": 0,
        "storage_byte_hours": "0",
    } | fields


def page(*lines: Mapping[str, Any]) -> dict[str, Any]:
    """Return a page of the brain with its sums."""
    sums = {name: str(sum(int(one[name]) for one in lines)) for name in SUMMED}
    return {"lines": list(lines), "sums": sums, "next": len(lines)}


def store(*lines: Mapping[str, Any], now: datetime = NOW) -> tuple[int, int]:
    """Import lines; return how many were new and how many rejected."""
    return usage_import.store(page(*lines), now=now)


def amounts(organization_id: int, kinds: Sequence[str]) -> tuple[int, ...]:
    """Return an organization's balances in µcr."""
    found = ledger.balances(organization_id)
    return tuple(found.get(AccountKind(kind), 0) for kind in kinds)


def consumer(organization_id: int = ALICE) -> tuple[int, ...]:
    """Return (granted, paid, debt)."""
    return amounts(organization_id, ("granted", "paid", "debt"))


def operator(organization_id: int = OLGA) -> tuple[int, ...]:
    """Return (held, payable, forfeited)."""
    return amounts(organization_id, ("held", "payable", "forfeited"))
