"""``manage.py rotatepasswords``: replace the passwords of roles of tenants' databases."""

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Mapping
from datetime import timedelta
from itertools import groupby
from typing import Any, Final

from django.db.models import Q, QuerySet
from django.utils import timezone

from common.commands import CommandRefused, CommandResult, OpsCommand
from common.errors import PlatformError
from environments.models import Organization
from sqlgateway.clusters import servers
from sqlgateway.databases import cluster_admission, password_rotation
from sqlgateway.management.arguments import database_of
from sqlgateway.models import Cluster, Database

REPORT_EVERY: Final = 100
# Includes databases that are being moved or filled, which are reported as failed.
STATES: Final = (*password_rotation.STATES, Database.State.MOVING, Database.State.COPYING)


class Command(OpsCommand):
    """Replace the passwords with which the platform logs in as tenants' roles."""

    help = (
        "Replace the passwords of database roles, which only the platform knows. No request fails; "
        "sessions opened with the old ones are ended. --older-than continues after an "
        "interruption. Exit status 4: some passwords could not be replaced."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add arguments for which databases to rotate, and for a dry run."""
        parser.add_argument("organization", nargs="?", type=int, help="Its id.")
        parser.add_argument("environment", nargs="?", help="Its id, as live.")
        parser.add_argument(
            "--cluster", metavar="NAME", help="All databases of a cluster, its stock too."
        )
        parser.add_argument("--all", action="store_true", help="All databases, the stock too.")
        parser.add_argument(
            "--older-than",
            type=_hours,
            metavar="HOURS",
            help="Only passwords that were set longer ago, as 1 or 0.5.",
        )
        parser.add_argument("--dry-run", action="store_true", help="Count, replace nothing.")

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Rotate one database after the other; continue after errors."""
        rows = _chosen(options)
        if options["older_than"] is not None:
            rows = rows.filter(_set_before(options["older_than"]))
        databases = rows.select_related("cluster", "environment").order_by("cluster_id", "id")
        if options["dry_run"]:
            facts = {"databases": databases.count(), "failed": [], "dry_run": True}
            text = f"{facts['databases']} databases would get new passwords."
            return CommandResult(facts, f"{text}\nA dry run: nothing was changed.")
        done, failed = self._rotate(list(databases))
        facts = {"databases": done, "failed": failed, "dry_run": False}
        unfinished = f"{len(failed)} databases keep their passwords." if failed else ""
        return CommandResult(facts, f"New passwords for databases: {done}.", unfinished)

    def _rotate(self, databases: list[Database]) -> tuple[int, list[dict[str, Any]]]:
        """Return the number of rotated databases, and those that failed with the error's code."""
        done, failed = 0, []
        for cluster, group in groupby(databases, lambda database: database.cluster):
            unreachable = _why_unreachable(cluster)
            if unreachable is not None:
                self.stderr.write(f"{cluster}: {servers.said(unreachable)}")
            for database in group:
                error = unreachable or _why_not_rotated(database)
                if error is not None:
                    failed.append({**_named(database), "error": error.code})
                    self.stderr.write(f"{database}: {error.code}: {servers.said(error)}")
                else:
                    done += 1
                if (done + len(failed)) % REPORT_EVERY == 0:
                    self.stderr.write(f"{done + len(failed)} of {len(databases)}")
        return done, failed


def _chosen(options: Mapping[str, Any]) -> QuerySet[Database]:
    """Return the databases that the arguments select.

    Raises Refused unless there is exactly one kind of selection.
    """
    organization_id = options["organization"]
    ways = [organization_id is not None, options["cluster"] is not None, options["all"]]
    if sum(ways) != 1:
        sentence = "Name an organization, and an environment of it or none; or --cluster; or --all."
        raise CommandRefused("choice_missing", sentence)
    if organization_id is None:
        rows: QuerySet[Database] = Database.objects.filter(state__in=STATES)
        if options["cluster"] is None:
            return rows
        return rows.filter(cluster=cluster_admission.find(options["cluster"]))
    own = Database.objects.filter(organization_id=organization_id)
    if options["environment"] is not None:
        return own.filter(pk=database_of(options).pk)
    if not Organization.objects.filter(pk=organization_id).exists():
        raise CommandRefused(
            "organization_not_found", f"There is no organization {organization_id}."
        )
    return own.filter(state__in=STATES)


def _set_before(hours: float) -> Q:
    before = timezone.now() - timedelta(hours=hours)
    return Q(passwords_since__lt=before) | Q(passwords_since=None, created_at__lt=before)


def _why_unreachable(cluster: Cluster) -> PlatformError | None:
    """Return the error if a cluster cannot be reached, otherwise None.

    Checked once for each cluster, so that not each of its databases waits for a timeout.
    """
    try:
        with servers.administer(servers.address_of(cluster)):
            return None
    except PlatformError as exc:
        return exc


def _why_not_rotated(database: Database) -> CommandRefused | PlatformError | None:
    """Rotate the passwords; return the error, None if there was none."""
    try:
        password_rotation.rotate(database)
    except (CommandRefused, PlatformError) as exc:
        return exc
    return None


def _named(database: Database) -> dict[str, Any]:
    slug = database.environment.slug if database.environment is not None else None
    return {"database": database.pk, "org_id": database.organization_id, "environment": slug}


def _hours(text: str) -> float:
    hours = float(text)
    if not 0 <= hours <= 1_000_000:
        raise ArgumentTypeError("It is a number of hours.")
    return hours
