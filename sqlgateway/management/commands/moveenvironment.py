"""``manage.py moveenvironment``: move an environment's database to another cluster."""

from argparse import ArgumentParser
from typing import Any

from common.commands import CommandResult, OpsCommand
from sqlgateway.databases import cluster_admission
from sqlgateway.databases.copies import moves
from sqlgateway.management.arguments import add_environment, database_of


class Command(OpsCommand):
    """Move an environment's database to another cluster."""

    help = (
        "Move an environment's database to another cluster. Requests wait for seconds while the "
        "data is copied and compared, then get 503. On any error, and after a crash, the database "
        "stays where it was. The old one is kept for a day."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add arguments for the environment and the target cluster."""
        add_environment(parser)
        parser.add_argument("--to", required=True, metavar="CLUSTER", help="The target's name.")

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Move the database, and return how long requests waited."""
        cluster = cluster_admission.find(options["to"])
        moved = moves.move(database_of(options), cluster)
        facts = {
            "org_id": options["organization"],
            "environment": options["environment"],
            "cluster": cluster.name,
            "stopped_ms": moved.stopped_ms,
            "elapsed_ms": moved.elapsed_ms,
        }
        text = f"{options['environment']} is on {cluster.name}; stopped for {moved.stopped_ms} ms."
        return CommandResult(facts, text)
