"""``manage.py cachenodes``: the worker nodes, and what staff decides about them."""

from argparse import ArgumentParser
from typing import Any, Final

from edgecache.api import nodes, staff_overview
from edgecache.api.command import table
from platform_site.lib.commands import OpsCommand, Outcome

COLUMNS: Final = (
    *("node_id", "endpoint", "region", "status", "health", "used_bytes", "capacity_bytes"),
    *("organization_id", "last_seen_at"),
)


class Command(OpsCommand):
    """List nodes, or decide about one."""

    help = (
        "List the cache's worker nodes of all organizations. With --approve: let a node that "
        "waits (pending), or was quarantined, serve. With --quarantine: stop asking a node."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the decision."""
        choice = parser.add_mutually_exclusive_group()
        choice.add_argument("--approve", metavar="NODE_ID", help="Let this node serve.")
        choice.add_argument("--quarantine", metavar="NODE_ID", help="Stop asking this node.")

    def run(self, options: dict[str, Any]) -> Outcome:
        """Decide, if asked to, and list."""
        for decision in ("approve", "quarantine"):
            if options[decision]:
                nodes.decide(options[decision], decision)
        rows = staff_overview.all_nodes()
        text = table(rows, COLUMNS) if rows else "No node is registered."
        return Outcome({"nodes": rows}, text)
