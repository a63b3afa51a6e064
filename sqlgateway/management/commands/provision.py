"""`manage.py provision`."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from environments.models import Environment
from platform_site.lib.errors import PlatformError
from platform_site.lib.principals import Scope
from sqlgateway.provisioning import stock
from sqlgateway.provisioning.provisioning import database_for


class Command(BaseCommand):
    """Create databases before they are needed."""

    help = "Prepare databases for the stock, or make the database of one environment."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add a number for the stock, or an organization and an environment."""
        parser.add_argument("organization", nargs="?", type=int, help="Its id.")
        parser.add_argument("environment", nargs="?", help="Its id, as live.")
        parser.add_argument("--stock", type=int, help="Bring the stock up to this many.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Create the databases."""
        try:
            if options["environment"] is not None:
                self._provision(options["organization"], options["environment"])
            else:
                made = stock.refill(options["stock"])
                self.stdout.write(f"{made} made, {stock.size()} in stock.")
        except PlatformError as exc:
            raise CommandError(str(exc)) from None

    def _provision(self, organization_id: int, slug: str) -> None:
        environment = (
            Environment.scoped.within_organization(organization_id)
            .filter(slug=slug, deleted_at=None)
            .first()
        )
        if environment is None:
            raise CommandError(f"Organization {organization_id} has no environment {slug}.")
        placement = database_for(Scope(organization_id, environment.pk))
        self.stdout.write(f"{slug} of organization {organization_id}: {placement.dbname}")
