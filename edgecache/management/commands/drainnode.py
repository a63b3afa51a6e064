"""``manage.py drainnode``: take a node out of service without losing copies."""

from argparse import ArgumentParser
from typing import Any

from common.commands import CommandResult, OpsCommand
from edgecache.management.arguments import decide


class Command(OpsCommand):
    """Drain a node, and with --remove deregister it."""

    help = (
        "Take a node out of service without losing copies: objects that only it holds are copied "
        "to other nodes. `cachenodes --approve` brings it back."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("node_id", help="Its id, as `cachenodes` shows it.")
        parser.add_argument(
            "--remove", action="store_true", help="Deregister it; it is deleted once that is done."
        )

    def run(self, options: dict[str, Any]) -> CommandResult:
        node_id = options["node_id"]
        decide(node_id, "remove" if options["remove"] else "drain")
        status = "removed" if options["remove"] else "draining"
        return CommandResult({"node_id": node_id, "status": status}, f"{node_id} is {status}.")
