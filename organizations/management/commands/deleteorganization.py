"""``manage.py deleteorganization``: delete an organization, after the delay or immediately."""

from argparse import ArgumentParser
from datetime import datetime
from typing import Any, Final

import psycopg
from django.db import DatabaseError, transaction
from django.utils import timezone

from audit import trail
from common.commands import CommandResult, OpsCommand
from common.errors import PlatformError
from common.problems import is_database_unreachable
from environments.management import arguments
from environments.models import Organization
from organizations import deletion
from organizations.audit_tags import OrganizationTag

UNFINISHED: Final = "The deletion has begun and is not complete."
AGAIN: Final = "It continues by itself within an hour, or immediately if you repeat this command."


class Command(OpsCommand):
    """Request or cancel a deletion, or delete an organization immediately."""

    help = (
        "Request the deletion of an organization with all of its data, after a delay. Its admins "
        "get a mail and can cancel. Payouts and earnings have to be settled first. Exit status 4: "
        "a service did not respond; repeat the command, or wait."
    )
    has_dry_run = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the arguments for the organization, its name as a confirmation, and the time."""
        parser.add_argument("organization", type=int, metavar="ID", help="The organization.")
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--name", help="The organization's name, as a confirmation.")
        what.add_argument("--cancel", action="store_true", help="Cancel a requested deletion.")
        parser.add_argument(
            "--at-once", action="store_true", help="Without the delay; this cannot be undone."
        )

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Delete the organization, or request or cancel its deletion."""
        organization = arguments.organization(options["organization"])
        if organization.deleted_at is not None:
            return _outcome(organization.pk)
        now = timezone.now()
        is_at_once = options["at_once"] and not options["cancel"]
        with transaction.atomic():
            if options["cancel"]:
                deletion.cancel(organization.pk, by=arguments.NAME)
            else:
                ask = deletion.request_at_once if is_at_once else deletion.request
                ask(organization.pk, name=options["name"], by=arguments.NAME, now=now)
            trail.add(
                None,
                OrganizationTag.CLI_ORGANIZATION_DELETE,
                organization_id=organization.pk,
                actor=arguments.NAME,
                data={"cancelled": options["cancel"], "at_once": options["at_once"]},
            )
        is_carried_out = is_at_once and not options["dry_run"]
        return _outcome(organization.pk, _delete(organization.pk, now) if is_carried_out else "")


def _delete(organization_id: int, now: datetime) -> str:
    """Delete the organization; return what the deletion waits for, '' if it is complete."""
    try:
        is_done = deletion.carry_out(organization_id, now=now)
    except PlatformError as exc:
        return f"{UNFINISHED} {exc.title} {AGAIN}"
    except (DatabaseError, psycopg.Error) as exc:
        if is_database_unreachable(exc):
            raise
        # For example, a database on the tenants' server is still in use.
        return f"{UNFINISHED} A database server refused a step: {exc}".rstrip() + f" {AGAIN}"
    return "" if is_done else f"{UNFINISHED} Another process is at it. {AGAIN}"


def _outcome(organization_id: int, unfinished: str = "") -> CommandResult:
    row = Organization.objects.get(pk=organization_id)
    due_at, deleted_at = row.deletion_due_at, row.deleted_at
    facts = {
        "org_id": row.pk,
        "deletion_due_at": due_at.isoformat() if due_at else None,
        "deleted_at": deleted_at.isoformat() if deleted_at else None,
    }
    if deleted_at is not None:
        return CommandResult(facts, f"Organization {row.pk} is deleted.")
    if unfinished:
        return CommandResult(facts, "", unfinished)
    if due_at is None:
        return CommandResult(facts, f"Organization {row.pk} is kept.")
    return CommandResult(facts, f"Organization {row.pk} is deleted at {due_at:%Y-%m-%d %H:%M} UTC.")
