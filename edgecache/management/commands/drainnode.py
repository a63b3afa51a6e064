"""``manage.py drainnode``: take a node out of service without losing copies."""

from argparse import ArgumentParser
from typing import Any

from edgecache.api import nodes
from platform_site.lib.commands import OpsCommand, Outcome


class Command(OpsCommand):
    """Drain a node, and with --remove let it go."""

    help = (
        "Take a node out of service: it is asked for nothing new, and what only it holds is copied "
        "to others first. With --remove it is gone from the list at once and forgotten afterwards; "
        "without, `cachenodes --approve` brings it back."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the node."""
        parser.add_argument("node_id", help="Its id, as `cachenodes` shows it.")
        parser.add_argument("--remove", action="store_true", help="Let it go for good.")

    def run(self, options: dict[str, Any]) -> Outcome:
        """Drain or remove."""
        node_id = options["node_id"]
        if options["remove"]:
            nodes.discard(node_id)
        else:
            nodes.decide(node_id, "drain")
        status = "removed" if options["remove"] else "draining"
        return Outcome({"node_id": node_id, "status": status}, f"{node_id} is {status}.")
