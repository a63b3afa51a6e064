"""``manage.py grantcredits``: grant or book credits of an organization."""

from argparse import ArgumentParser
from decimal import Decimal, InvalidOperation
from typing import Any

from django.db import transaction

from accounts.audit import audit
from edgecache.billing import consumer_credits, ledger
from edgecache.billing.audit_tags import BillingTag
from edgecache.billing.models import AccountKind, Journal
from edgecache.billing.money import LARGEST_UCR, UCR_PER_CREDIT, credits_text
from environments.models import Organization
from platform_site.lib.commands import OpsCommand, Outcome, Refused
from platform_site.lib.ids import uuid7


class Command(OpsCommand):
    """Add credits to an organization."""

    help = (
        "Grant credits to an organization, or with --paid book credits that it has paid for: only "
        "paid credits earn operators a share. With the same --reference it is done once."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("organization", type=int, help="Id of the organization.")
        parser.add_argument("credits", help="How many credits, such as 100000 or 0.5.")
        parser.add_argument("--reason", required=True, help="Kept with the journal.")
        parser.add_argument("--paid", action="store_true", help="They were paid for.")
        parser.add_argument("--reference", help="Unique; of the payment, for example.")
        parser.add_argument("--dry-run", action="store_true", help="Check, and keep nothing.")

    def run(self, options: dict[str, Any]) -> Outcome:
        organization_id = options["organization"]
        if not Organization.objects.filter(pk=organization_id).exists():
            raise Refused("organization_not_found", "There is no such organization.")
        amount_ucr = _ucr(options["credits"])
        reference = options["reference"] or str(uuid7())
        words = {"reason": options["reason"], "actor": "command"}
        with transaction.atomic():
            if options["paid"]:
                journal = consumer_credits.top_up(
                    organization_id, amount_ucr, reference=reference, **words
                )
            else:
                key = f"grant:{reference}"
                journal = consumer_credits.grant(organization_id, amount_ucr, key=key, **words)
            if journal is not None:
                _note(journal, amount_ucr, options)
            balances = ledger.balances(organization_id)
            if options["dry_run"]:
                transaction.set_rollback(True)
        granted_ucr, paid_ucr, debt_ucr = (
            balances.get(kind, 0)
            for kind in (AccountKind.GRANTED, AccountKind.PAID, AccountKind.DEBT)
        )
        facts = {
            "reference": reference,
            "posted": journal is not None and not options["dry_run"],
            "granted_ucr": granted_ucr,
            "paid_ucr": paid_ucr,
            "debt_ucr": debt_ucr,
        }
        text = (
            f"Organization {organization_id} has {credits_text(granted_ucr)} granted and "
            f"{credits_text(paid_ucr)} paid credits."
        )
        return Outcome(facts, text if journal else f"{reference} was booked before. {text}")


def _note(journal: Journal, amount_ucr: int, options: dict[str, Any]) -> None:
    audit.add(
        None,
        BillingTag.ADMIN_CREDITS_GRANT,
        organization_id=options["organization"],
        actor="command",
        data={
            "amount_ucr": amount_ucr,
            "is_paid": options["paid"],
            "reference": options["reference"] or "",
            "journal": str(journal.pk),
            "reason": options["reason"][:300],
        },
    )


def _ucr(text: str) -> int:
    try:
        amount = Decimal(text) * UCR_PER_CREDIT
    except InvalidOperation:
        amount = Decimal(0)
    if not amount.is_finite() or amount != int(amount) or not 0 < amount <= LARGEST_UCR:
        raise Refused("amount_refused", "The credits must be positive, with at most six decimals.")
    return int(amount)
