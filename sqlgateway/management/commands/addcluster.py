"""``manage.py addcluster``: add a server for tenants' databases."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.core.validators import validate_slug

from common.commands import CommandRefused, CommandResult, OpsCommand
from common.settings.table import POSTGRESQL_SCHEMES
from sqlgateway.clusters import servers
from sqlgateway.databases import cluster_admission
from sqlgateway.databases.cluster_admission import KEEP, NewCluster

CAPACITY = 1_000


class Command(OpsCommand):
    """Check and prepare a server, and allow databases to be placed on it."""

    help = (
        "Add a PostgreSQL server (15 to 18) for tenants' databases, or change the URL, capacity "
        "and organization of one. The server is checked and prepared first. Safe to repeat; it "
        "opens a drained cluster again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add arguments for the name, the URL and the capacity."""
        parser.add_argument("name", help="A name for operators: letters, digits, - and _.")
        parser.add_argument(
            "--url-file",
            required=True,
            metavar="FILE",
            help="File with the URL of a superuser, as postgresql://user:password@host/; - is "
            "standard input.",
        )
        parser.add_argument(
            "--capacity", type=_positive, default=CAPACITY, help="Databases to place on it, 1000."
        )
        whose = parser.add_mutually_exclusive_group()
        whose.add_argument(
            "--organization",
            type=_positive,
            metavar="ID",
            help="Place only databases of this organization on it, and its new ones nowhere else.",
        )
        whose.add_argument(
            "--shared",
            action="store_true",
            help="Place databases of all organizations on it again.",
        )
        parser.add_argument(
            "--accept-findings",
            action="store_true",
            help="Use the server in spite of what the check finds.",
        )

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Add the cluster, and return its state and the findings of the check."""
        name = str(options["name"])
        if name == servers.DEFAULT:
            sentence = "The cluster default follows ZSQL_CLUSTER_URL."
            raise CommandRefused("cluster_taken", sentence)
        cluster, findings = cluster_admission.add(
            NewCluster(
                name=_checked_name(name),
                url=_read_url(str(options["url_file"])),
                capacity=options["capacity"],
                accepts_findings=options["accept_findings"],
                organization_id=None if options["shared"] else options["organization"] or KEEP,
            )
        )
        facts = {
            "cluster": cluster.name,
            "state": cluster.state,
            "org_id": cluster.reserved_for_id,
            "capacity": cluster.capacity,
            "server_version": cluster.server_version,
            "findings": findings,
        }
        return CommandResult(facts, "\n".join([f"{cluster.name}: open.", *findings]))


def _positive(text: str) -> int:
    number = int(text)
    if not 0 < number < 2**31:
        raise ValueError(text)
    return number


def _checked_name(name: str) -> str:
    try:
        validate_slug(name)
    except ValidationError as exc:
        raise CommandRefused("name_invalid", "A name has letters, digits, - and _.") from exc
    return name


def _read_url(file: str) -> str:
    try:
        url = (sys.stdin.read() if file == "-" else Path(file).read_text()).strip()
    except (OSError, UnicodeDecodeError) as exc:
        raise CommandRefused("file_unreadable", f"{file} cannot be read.") from exc
    try:
        scheme = urlsplit(url).scheme
    except ValueError:
        raise CommandRefused("url_invalid", "The URL cannot be read.") from None
    if scheme not in POSTGRESQL_SCHEMES:
        raise CommandRefused("url_invalid", "The URL begins with postgresql://.")
    return url
