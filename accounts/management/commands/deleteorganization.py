"""``manage.py deleteorganization``: delete an organization, after the delay or at once."""

from argparse import ArgumentParser
from typing import Any

from django.db import transaction
from django.utils import timezone

from accounts.audit import audit
from accounts.audit_tags import AccountTag
from accounts.management import operators
from accounts.organization import deletion
from environments.models import Organization
from platform_site.lib.commands import OpsCommand, Outcome


class Command(OpsCommand):
    """Request or cancel a deletion, or carry it out now."""

    help = (
        "Have an organization deleted with everything that belongs to it, after the delay in which "
        "its admins, who get a mail, can cancel. Payouts and earnings have to be settled first."
    )
    has_dry_run = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take which one, its name as a proof that it is meant, and when."""
        parser.add_argument("organization", type=int, metavar="ID")
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--name", help="What it is called: proves that it is meant.")
        what.add_argument("--cancel", action="store_true", help="Keep it.")
        parser.add_argument(
            "--at-once", action="store_true", help="Without the delay; this cannot be undone."
        )

    def run(self, options: dict[str, Any]) -> Outcome:
        """Do it."""
        organization_id = operators.organization(options["organization"]).pk
        now = timezone.now()
        with transaction.atomic():
            if options["cancel"]:
                row = deletion.cancel(organization_id, by=operators.NAME)
            else:
                row = deletion.request(
                    organization_id, name=options["name"], by=operators.NAME, now=now
                )
            if options["at_once"] and not options["cancel"]:
                row.deletion_due_at = now
                row.save(update_fields=["deletion_due_at"])
            audit.add(
                None,
                AccountTag.CLI_ORGANIZATION_DELETE,
                organization_id=organization_id,
                actor=operators.NAME,
                data={"cancelled": options["cancel"], "at_once": options["at_once"]},
            )
        if options["at_once"] and not options["cancel"] and not options["dry_run"]:
            deletion.carry_out(organization_id, now=now)
        return _outcome(Organization.objects.get(pk=organization_id))


def _outcome(row: Organization) -> Outcome:
    due_at, deleted_at = row.deletion_due_at, row.deleted_at
    facts = {
        "org_id": row.pk,
        "deletion_due_at": due_at.isoformat() if due_at else None,
        "deleted_at": deleted_at.isoformat() if deleted_at else None,
    }
    if deleted_at is not None:
        return Outcome(facts, f"Organization {row.pk} is deleted.")
    if due_at is None:
        return Outcome(facts, f"Organization {row.pk} is kept.")
    return Outcome(facts, f"Organization {row.pk} is deleted at {due_at:%Y-%m-%d %H:%M} UTC.")
