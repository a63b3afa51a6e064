"""``manage.py dumpenvironment``: write an environment's data to a file."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from audit import trail
from common.commands import CommandResult, OpsCommand
from sqlgateway.audit_tags import SqlTag
from sqlgateway.databases.copies import restores
from sqlgateway.management.arguments import add_environment, database_of


class Command(OpsCommand):
    """Write one environment's database to a file."""

    help = (
        "Write an environment's database to a new file in pg_dump's custom format, with owners and "
        "privileges, as it is at one moment. The file is readable by you alone. Exit status 4: it "
        "is written, but cannot be restored, and the sentence says why."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add arguments for the environment and the file."""
        add_environment(parser)
        parser.add_argument("file", help="The file to make.")

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Write the dump, record it in the audit trail, and return its size."""
        database = database_of(options)
        made = restores.dump(database, Path(options["file"]).absolute())
        trail.add(
            None,
            SqlTag.CLI_DATABASE_DUMP,
            organization_id=database.organization_id,
            environment_id=options["environment"],
            actor="command",
            data={
                "database": database.pk,
                "size_bytes": made.size_bytes,
                **({"cannot_restore": made.trial.complaint} if made.trial.complaint else {}),
                **({"left_out": [*made.trial.left_out]} if made.trial.left_out else {}),
            },
        )
        facts = {
            "org_id": options["organization"],
            "environment": options["environment"],
            "file": options["file"],
            "size_bytes": made.size_bytes,
            "is_tried": made.trial.is_known,
            "cannot_restore": made.trial.complaint,
            "left_out": [*made.trial.left_out],
        }
        said = f"{options['file']}: {made.size_bytes} bytes."
        if made.trial.complaint:
            return CommandResult(facts, said, unfinished=made.trial.text)
        return CommandResult(facts, f"{said} {made.trial.text}".strip())
