"""``manage.py grantcredits``: grant or book credits of an organization."""

from argparse import ArgumentParser, ArgumentTypeError
from decimal import Decimal
from typing import Any, Final

from django.db import transaction

from audit import trail
from billing import consumer_credits, ledger
from billing.audit_tags import BillingTag
from billing.models.ledger import AccountKind, Entry, Journal
from billing.money import MAX_UCR, UCR_PER_CREDIT, credits_text
from billing.topups import requests
from common.commands import CommandRefused, CommandResult, OpsCommand
from common.ids import uuid7
from environments.management import arguments
from environments.models import Organization

# As in the admin.
REFERENCE_CHARS: Final = 100


class Command(OpsCommand):
    """Add credits to an organization."""

    help = (
        "Grant credits to an organization, or with --paid book credits that it has paid for: only "
        "those earn operators a share. With the same --reference it is done once."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("organization", type=int, help="Id of the organization.")
        parser.add_argument("credits", help="How many credits, such as 100000 or 0.5.")
        parser.add_argument(
            "--reason", required=True, type=arguments.reason, help="Kept with the journal."
        )
        parser.add_argument("--paid", action="store_true", help="They were paid for.")
        parser.add_argument(
            "--reference", type=_reference, help="Unique; of the payment, for example."
        )
        parser.add_argument("--dry-run", action="store_true", help="Check, and keep nothing.")

    def run(self, options: dict[str, Any]) -> CommandResult:
        organization_id = options["organization"]
        if not Organization.objects.filter(pk=organization_id).exists():
            raise CommandRefused("organization_not_found", "There is no such organization.")
        amount_ucr = _ucr(options["credits"])
        reference = options["reference"] or str(uuid7())
        with transaction.atomic():
            journal = _post(options, amount_ucr, reference)
            if journal is not None:
                _note(journal, amount_ucr, options)
            balances = ledger.balances(organization_id)
            if options["dry_run"]:
                transaction.set_rollback(True)
        if options["paid"] and not options["dry_run"]:
            # In its own transaction, as after a provider's report.
            requests.take_back(reference)
            balances = ledger.balances(organization_id)
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
        return CommandResult(facts, text if journal else f"{reference} was booked before. {text}")


def _post(options: dict[str, Any], amount_ucr: int, reference: str) -> Journal | None:
    """Book the credits; None if they were booked before.

    Raises CommandRefused for a used reference.
    """
    organization_id = options["organization"]
    words = {"reason": options["reason"], "actor": "command"}
    if options["paid"]:
        key = f"top_up:{reference}"
        journal = consumer_credits.top_up(organization_id, amount_ucr, reference=reference, **words)
    else:
        key = f"grant:{reference}"
        journal = consumer_credits.grant(organization_id, amount_ucr, key=key, **words)
    if journal is None:
        before = Entry.objects.filter(journal__key=key, amount_ucr=amount_ucr)
        if not before.filter(account__organization_id=organization_id).exists():
            message = f"{reference} was booked for another organization or with another amount."
            raise CommandRefused("reference_taken", message)
    return journal


def _note(journal: Journal, amount_ucr: int, options: dict[str, Any]) -> None:
    trail.add(
        None,
        BillingTag.ADMIN_CREDITS_GRANT,
        organization_id=options["organization"],
        actor="command",
        data={
            "amount_ucr": amount_ucr,
            "is_paid": options["paid"],
            "reference": options["reference"] or "",
            "journal": str(journal.pk),
            "reason": options["reason"],
        },
    )


def _ucr(text: str) -> int:
    try:
        amount = Decimal(text) * UCR_PER_CREDIT
    except ArithmeticError:
        amount = Decimal(0)
    if not amount.is_finite() or not 0 < amount <= MAX_UCR or amount != int(amount):
        raise CommandRefused(
            "amount_refused", "The credits must be positive, with at most six decimals."
        )
    return int(amount)


def _reference(text: str) -> str:
    """Return a reference; an empty one is a script's unset variable, and would not be unique."""
    if not 0 < len(text) <= REFERENCE_CHARS or not text.isprintable():
        raise ArgumentTypeError(f"a reference has 1 to {REFERENCE_CHARS} printable characters")
    return text
