"""``manage.py draincluster``: stop using a server."""

from argparse import ArgumentParser
from typing import Any

from common.commands import CommandRefused, CommandResult, OpsCommand
from common.errors import PlatformError
from sqlgateway.clusters import servers
from sqlgateway.databases import cluster_admission
from sqlgateway.databases.copies import moves
from sqlgateway.models import Cluster, Database


class Command(OpsCommand):
    """Stop placing databases on a cluster, and move its databases if requested."""

    help = (
        "Stop placing databases on a cluster. It is closed when it has no databases left, "
        "including those kept after a move. Safe to repeat; addcluster opens it again. Exit status "
        "4: some databases could not be moved."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add arguments for the name of the cluster, and for what happens to its databases."""
        parser.add_argument("name", help="The cluster's name.")
        parser.add_argument(
            "--move", action="store_true", help="Move its environments to the other clusters."
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="Only show what is there, and would be moved."
        )

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Drain the cluster, and return the databases that remain, were moved, or failed."""
        cluster = cluster_admission.find(options["name"])
        if options["dry_run"]:
            return _preview(cluster, is_moving=options["move"])
        cluster_admission.stop_placing(cluster)
        moved, failed = _move_all(cluster) if options["move"] else ([], [])
        remaining = cluster_admission.stop_placing(cluster)
        facts = {
            "cluster": cluster.name,
            "state": cluster.state,
            "databases": remaining,
            "moved": moved,
            "failed": failed,
        }
        text = f"{cluster.name}: {cluster.state}, {remaining} databases remain."
        unfinished = f"{len(failed)} databases could not be moved." if failed else ""
        return CommandResult(facts, text, unfinished)


def _preview(cluster: Cluster, *, is_moving: bool) -> CommandResult:
    """Return the databases on a cluster. ``moved`` lists those that would be moved."""
    kept = Database.objects.filter(cluster=cluster)
    active = kept.filter(state=Database.State.ACTIVE).select_related("environment").order_by("id")
    named = [_named(each) for each in active] if is_moving else []
    facts = {
        "cluster": cluster.name,
        "state": cluster.state,
        "databases": kept.exclude(state=Database.State.STOCK).count(),
        "moved": named,
        "failed": [],
        "dry_run": True,
    }
    text = (
        f"{cluster.name}: {cluster.state}, {facts['databases']} databases; "
        f"{len(named)} would be moved. A dry run: nothing was changed."
    )
    return CommandResult(facts, text)


def _named(database: Database) -> dict[str, Any]:
    return {"org_id": database.organization_id, "environment": str(database.environment)}


def _move_all(cluster: Cluster) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the databases that were moved, and those that failed with the error's code."""
    moved, failed = [], []

    rows = Database.objects.filter(cluster=cluster, state=Database.State.ACTIVE)
    for database in rows.select_related("cluster", "environment").order_by("id"):
        name = _named(database)
        try:
            target = servers.emptiest(
                database.organization_id, major=cluster.server_version // 10_000
            )
            result = moves.move(database, target)
        except (CommandRefused, PlatformError) as exc:
            failed.append({**name, "error": exc.code})
        else:
            moved.append({**name, "cluster": target.name, "stopped_ms": result.stopped_ms})
    return moved, failed
