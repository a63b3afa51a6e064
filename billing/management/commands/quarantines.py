"""``manage.py quarantines``: list quarantined nodes, forfeit their earnings, decide appeals."""

from argparse import ArgumentParser
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from billing import quarantines
from billing.audit_tags import BillingTag
from billing.errors import QuarantineNotFound
from billing.models.quarantines import Quarantine
from billing.money import credits_text
from common.commands import CommandRefused, CommandResult, OpsCommand
from edgecache.management.arguments import table

COLUMNS: Final = (
    "id",
    "node_id",
    "organization_id",
    "began_at",
    "state",
    "reason",
    "forfeited_ucr",
    "appeal",
)
ACTOR: Final = "command"


class Command(OpsCommand):
    """List quarantines, or decide about one."""

    help = (
        "List the quarantines of operators' nodes, or decide about one. The operator's admins get "
        "a mail."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        choice = parser.add_mutually_exclusive_group()
        choice.add_argument(
            "--forfeit", type=UUID, metavar="ID", help="Take what the node earned and was not paid."
        )
        choice.add_argument(
            "--grant", type=UUID, metavar="ID", help="Grant the appeal: what was taken is returned."
        )
        choice.add_argument("--reject", type=UUID, metavar="ID", help="Reject the appeal.")
        parser.add_argument("--reason", default="", help="Shown to the operator; needed.")
        parser.add_argument("--yes", action="store_true", help="Do it; without, it is only shown.")

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Carry out the decision, then list."""
        for decision in ("forfeit", "grant", "reject"):
            if options[decision]:
                self._decide(decision, options[decision], options)
        rows = [_row(row) for row in Quarantine.objects.order_by("-id")[:200]]
        return CommandResult(
            {"quarantines": rows}, table(rows, COLUMNS) if rows else "There are none."
        )

    def _decide(self, decision: str, quarantine_id: UUID, options: dict[str, Any]) -> None:
        reason = options["reason"].strip()
        if not reason:
            raise CommandRefused("reason_missing", "A --reason is needed; the operator reads it.")
        row = Quarantine.objects.filter(pk=quarantine_id).first()
        if row is None:
            raise QuarantineNotFound
        if not options["yes"]:
            most = credits_text(quarantines.forfeitable_ucr(row))
            raise CommandRefused(
                "not_confirmed",
                f"{decision}: node {row.node_id} of organization {row.organization_id}, with "
                f"{most} credits unpaid and {credits_text(row.forfeited_ucr)} taken. Add --yes.",
            )
        with transaction.atomic():
            now = timezone.now()
            if decision == "forfeit":
                row = quarantines.forfeit(quarantine_id, reason=reason, actor=ACTOR, now=now)
                tag = BillingTag.ADMIN_EARNINGS_FORFEIT
            else:
                is_granted = decision == "grant"
                row = quarantines.decide(
                    quarantine_id, is_granted=is_granted, reason=reason, actor=ACTOR, now=now
                )
                tag = BillingTag.ADMIN_APPEAL_DECIDE
            quarantines.record(None, tag, row, actor=ACTOR, reason=reason)


def _row(row: Quarantine) -> dict[str, Any]:
    return {
        "id": str(row.pk),
        "node_id": str(row.node_id),
        "organization_id": row.organization_id,
        "began_at": row.began_at.isoformat(),
        "state": row.state,
        "reason": row.reason,
        "forfeited_ucr": row.forfeited_ucr,
        "appeal": row.appeal,
    }
