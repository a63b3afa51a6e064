"""``manage.py restoreenvironment``: replace an environment's data by a dump."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from common.commands import CommandResult, OpsCommand
from sqlgateway.databases.copies import restores
from sqlgateway.management.arguments import add_environment, database_of


class Command(OpsCommand):
    """Replace an environment's data by a dump."""

    help = (
        "Replace an environment's data by a dump in pg_dump's custom format, which need not be "
        "trusted. After an error or a crash the present data is unchanged; otherwise it is kept "
        "for a day."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add arguments for the environment and the file."""
        add_environment(parser)
        parser.add_argument("file", help="The dump.")
        parser.add_argument(
            "--all-to-admin",
            action="store_true",
            help="Give every object to the environment's admin: for a dump of another environment "
            "or server, whose roles are not known here.",
        )

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Restore the dump, and return how long requests waited and what was left out."""
        database = database_of(options, is_made=True)
        restored = restores.restore(
            database, Path(options["file"]).absolute(), all_to_admin=options["all_to_admin"]
        )
        facts = {
            "org_id": options["organization"],
            "environment": options["environment"],
            "stopped_ms": restored.stopped_ms,
            "elapsed_ms": restored.elapsed_ms,
            "left_out": [*restored.left_out],
        }
        said = f"Restored; requests waited for {restored.stopped_ms} ms."
        if restored.left_out:
            said += f" Not restored: {', '.join(restored.left_out)}."
        return CommandResult(facts, said)
