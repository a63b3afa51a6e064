"""``manage.py provision``: create databases before they are needed."""

from argparse import ArgumentParser
from typing import Any

from common.commands import CommandRefused, CommandResult, OpsCommand
from common.principals import Scope
from environments import environments
from sqlgateway.databases import stock
from sqlgateway.databases.provisioning import database_for


class Command(OpsCommand):
    """Create databases in stock, or the database of an environment."""

    help = (
        "Prepare databases for the stock, or make the database of one environment. Safe to repeat."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add arguments for the size of the stock, or an organization and an environment."""
        parser.add_argument("organization", nargs="?", type=int, help="Its id.")
        parser.add_argument("environment", nargs="?", help="Its id, as live.")
        parser.add_argument("--stock", type=int, help="Bring the stock up to this many.")

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Create the databases, and return their number or the name of the database."""
        organization_id, name = options["organization"], options["environment"]
        if name is not None:
            return _provisioned(organization_id, name)
        if organization_id is not None:
            raise CommandRefused(
                "environment_missing", "Name the environment too, as `provision 5 live`."
            )
        made, size = stock.refill(options["stock"]), stock.size()
        return CommandResult({"made": made, "stock": size}, f"{made} made, {size} in stock.")


def _provisioned(organization_id: int, name: str) -> CommandResult:
    environment = environments.find(organization_id, name)
    placement = database_for(Scope(organization_id, environment.pk))
    facts = {
        "org_id": organization_id,
        "environment": environment.slug,
        "dbname": placement.dbname,
    }
    return CommandResult(facts, f"{name} of organization {organization_id}: {placement.dbname}")
