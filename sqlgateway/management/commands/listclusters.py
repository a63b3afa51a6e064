"""``manage.py listclusters``: list the servers of tenants' databases."""

from typing import Any

from common.commands import CommandResult, OpsCommand
from sqlgateway.clusters import servers
from sqlgateway.errors import EngineUnavailable
from sqlgateway.models import Cluster


class Command(OpsCommand):
    """List the clusters with their databases, and whether they answer."""

    help = (
        "List the servers of tenants' databases: state, databases, capacity, version, and whether "
        "each can be used now; if not, why."
    )

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Return a row for each cluster."""
        rows = [_facts(cluster) for cluster in servers.with_counts().order_by("id")]
        return CommandResult({"clusters": rows}, "\n".join(map(_line, rows)))


def _facts(cluster: Any) -> dict[str, Any]:
    reason = _refusal(cluster)
    return {
        "name": cluster.name,
        "state": cluster.state,
        "org_id": cluster.reserved_for_id,
        "databases": cluster.placed,
        "in_stock": cluster.in_stock,
        "capacity": cluster.capacity,
        "server_version": cluster.server_version,
        "flags": cluster.flags,
        "answers": not reason,
        "reason": reason,
    }


def _refusal(cluster: Cluster) -> str:
    """Return why a server cannot be used, "" if it can."""
    try:
        address = servers.address_of(cluster)
        with servers.administer(address) as connection:
            return servers.unfit(address, connection)
    except EngineUnavailable as exc:
        return exc.for_operators if exc.is_unfit else f"DOES NOT ANSWER: {exc.for_operators}"


def _line(row: dict[str, Any]) -> str:
    version = "{}.{}".format(*divmod(row["server_version"], 10_000))
    answer = "" if row["answers"] else f"  {row['reason']}"
    owner = "" if row["org_id"] is None else f", for organization {row['org_id']}"
    return (
        f"{row['name']}: {row['state']}, {row['databases']} of {row['capacity']} databases, "
        f"{row['in_stock']} of them in stock, PostgreSQL {version}{owner}{answer}"
    )
