"""``manage.py exportorganization``: export an organization's data to an archive."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings

from audit import trail
from common.archives import ArchiveRefused
from common.commands import CommandRefused, CommandResult, OpsCommand
from environments.management import arguments
from organizations import exports
from organizations.audit_tags import OrganizationTag


class Command(OpsCommand):
    """Write the archive that an admin can request."""

    help = (
        "Write all data of an organization to a new zip file, which only you can read: members, "
        "audit trail, databases, lists of objects, billing; no secrets."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the arguments for the organization and the file."""
        parser.add_argument("organization", type=int, metavar="ID", help="Its id.")
        parser.add_argument(
            "--output", type=Path, required=True, metavar="FILE", help="A new file."
        )

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Write the archive."""
        organization_id = arguments.organization(options["organization"]).pk
        path: Path = options["output"].absolute()
        if path.exists():
            raise CommandRefused("output_refused", f"{path} exists.")
        try:
            limit_bytes = settings.ORGANIZATIONS.export_disk_bytes
            size_bytes, missing = exports.write(organization_id, path, limit_bytes=limit_bytes)
        except OSError as exc:
            raise CommandRefused("output_refused", f"{path}: {exc.strerror}.") from exc
        except ArchiveRefused as exc:
            raise CommandRefused("export_refused", str(exc)) from exc
        trail.add(
            None,
            OrganizationTag.CLI_ORGANIZATION_EXPORT,
            organization_id=organization_id,
            actor=arguments.NAME,
        )
        facts = {"org_id": organization_id, "output": str(path), "size_bytes": size_bytes}
        text = " ".join([f"{path}: {size_bytes} bytes.", *missing])
        return CommandResult(facts | {"missing": missing}, text)
