"""``manage.py cachenodes``: list the worker nodes, approve or quarantine one."""

from argparse import ArgumentParser
from typing import Any, Final

from common.commands import CommandResult, OpsCommand
from edgecache.api import staff_overview
from edgecache.management.arguments import decide, table

COLUMNS: Final = (
    "node_id",
    "endpoint",
    "region",
    "status",
    "health",
    "used_bytes",
    "capacity_bytes",
    "organization_id",
    "last_seen_at",
)


class Command(OpsCommand):
    """List nodes, or change the status of one."""

    help = "List the cache's worker nodes of all organizations, approve or quarantine one."

    def add_arguments(self, parser: ArgumentParser) -> None:
        choice = parser.add_mutually_exclusive_group()
        choice.add_argument(
            "--approve", metavar="NODE_ID", help="Let this pending or quarantined node serve."
        )
        choice.add_argument("--quarantine", metavar="NODE_ID", help="Stop using this node.")

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Apply the decision, then list."""
        for decision in ("approve", "quarantine"):
            if options[decision]:
                decide(options[decision], decision)
        rows = staff_overview.all_nodes()
        text = table(rows, COLUMNS) if rows else "No node is registered."
        return CommandResult({"nodes": rows}, text)
