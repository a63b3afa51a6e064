"""Arguments that the commands about an environment's database share."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from common.commands import CommandRefused
from common.principals import Scope
from environments import environments
from sqlgateway.databases.provisioning import database_for
from sqlgateway.models import Database


def add_environment(parser: ArgumentParser) -> None:
    """Add arguments for an organization and one of its environments."""
    parser.add_argument("organization", type=int, help="The organization's id.")
    parser.add_argument("environment", help="The environment's id, as live.")


def database_of(options: Mapping[str, Any], *, is_made: bool = False) -> Database:
    """Return the row of the database of the environment in the options.

    is_made: create the database if there is none.
    Raises EnvironmentNotFound, EngineUnavailable; CommandRefused if there is none.
    """
    environment = environments.find(options["organization"], options["environment"])
    if is_made:
        database_for(Scope(environment.organization_id, environment.pk))
    database: Database | None = (
        Database.objects.filter(organization_id=environment.organization_id)
        .select_related("cluster", "environment")
        .filter(environment=environment)
        .exclude(state=Database.State.PREPARING)
        .first()
    )
    if database is None:
        sentence = "The environment has no database yet; the first query makes one."
        raise CommandRefused("database_not_made", sentence)
    return database
