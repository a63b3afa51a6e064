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
        "each can be used now (answers: false is not an error of this command; reason says why, "
        "where the server answered)."
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
        "databases": cluster.placed,
        "in_stock": cluster.in_stock,
        "capacity": cluster.capacity,
        "server_version": cluster.server_version,
        "flags": cluster.flags,
        "answers": reason is None,
        "reason": reason or "",
    }


def _refusal(cluster: Cluster) -> str | None:
    """Return why a server cannot be used, "" if it does not answer, None if it does."""
    try:
        with servers.administer(servers.address_of(cluster)) as connection:
            connection.execute("SELECT 1")
    except EngineUnavailable as exc:
        return exc.reason
    return None


def _line(row: dict[str, Any]) -> str:
    version = "{}.{}".format(*divmod(row["server_version"], 10_000))
    answer = "" if row["answers"] else f"  {row['reason'] or 'DOES NOT ANSWER'}"
    return (
        f"{row['name']}: {row['state']}, {row['databases']} of {row['capacity']} databases, "
        f"{row['in_stock']} of them in stock, PostgreSQL {version}{answer}"
    )
