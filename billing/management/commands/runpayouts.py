"""``manage.py runpayouts``: list open payouts, send them, and mark those paid by hand."""

import contextlib
import csv
import io
from argparse import ArgumentParser
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from audit import trail
from billing import holds
from billing.audit_tags import BillingTag
from billing.models.payouts import Payout
from billing.payouts import manual, reconciliation, requests
from billing.payouts.providers import PayoutOutcome, PayoutProviderUnavailable, ProviderAnswer
from common.commands import CommandRefused, CommandResult, OpsCommand
from edgecache.management.arguments import table

COLUMNS: Final = (
    "id",
    "organization_id",
    "method",
    "account",
    "amount_cents",
    "currency",
    "state",
    "attempts",
    "hold_reason",
    "created_at",
)
ACTOR: Final = "command"
STOPPED: Final = "stopped by staff"


class Command(OpsCommand):
    help = (
        "Release earnings after their hold, send the payouts that are due, ask providers about "
        "those that were sent, and list what is open. Repeating any of it pays nothing twice."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        choice = parser.add_mutually_exclusive_group()
        choice.add_argument("--paid", type=UUID, metavar="ID", help="It has been paid by hand.")
        choice.add_argument(
            "--failed", type=UUID, metavar="ID", help="It was not paid by hand, or came back."
        )
        choice.add_argument("--hold", type=UUID, metavar="ID", help="Do not send it yet.")
        choice.add_argument("--release", type=UUID, metavar="ID", help="Send it after all.")
        choice.add_argument(
            "--reconcile",
            action="store_true",
            help="After a restore: ask providers about the payouts that were sent; "
            "what they do not know is payable again.",
        )
        choice.add_argument(
            "--reconciled",
            action="store_true",
            help="After a restore: all payments since the backup are accounted for; pay again.",
        )
        choice.add_argument(
            "--record",
            type=int,
            metavar="ORG",
            help="After a restore: book a payment of --cents to an organization, with the "
            "provider's --reference, that was made since the backup.",
        )
        choice.add_argument("--dry-run", action="store_true", help="Only list.")
        choice.add_argument("--csv", action="store_true", help="Only list, as CSV with accounts.")
        parser.add_argument(
            "--reason",
            default="",
            help="For --failed, --hold and --reconciled; kept in the audit trail.",
        )
        parser.add_argument("--reference", default="", help="Of the bank, for --paid, --record.")
        parser.add_argument("--cents", type=int, default=0, help="For --record.")

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Carry out the decision, or run everything that is due."""
        now = timezone.now()
        if options["paid"] or options["failed"]:
            _settle(options, now)
        elif options["hold"] or options["release"]:
            _hold(options)
        elif options["record"]:
            _record(options, now)
        elif options["reconcile"]:
            reconciliation.ask_providers(now=now)
        elif options["reconciled"]:
            _finish_reconciliation(options["reason"])
        elif not options["dry_run"] and not options["csv"]:
            holds.release_all(now=now)
            for payout in requests.open_payouts():
                with contextlib.suppress(PayoutProviderUnavailable):
                    requests.send(payout.pk, now=now)
        rows = [_row(payout) for payout in requests.open_payouts()]
        text = _csv(rows) if options["csv"] else table(rows, COLUMNS)
        return CommandResult({"payouts": rows}, text if rows else "No payout is open.")


def _finish_reconciliation(reason: str) -> None:
    with transaction.atomic():
        if reconciliation.finish():
            trail.add(
                None,
                BillingTag.ADMIN_PAYOUT_RECONCILE,
                actor=ACTOR,
                data={"reason": reason[:300]},
            )


def _record(options: dict[str, Any], now: datetime) -> None:
    if options["cents"] < 1 or not options["reference"]:
        raise CommandRefused("record_incomplete", "Name --cents and --reference.")
    cents, reference = options["cents"], options["reference"]
    with transaction.atomic():
        payout = requests.record(options["record"], cents, reference=reference, by="staff", now=now)
        if payout.changed_at == now:
            _note(BillingTag.ADMIN_PAYOUT_RECORD, payout, options["reason"])


def _settle(options: dict[str, Any], now: datetime) -> None:
    """Mark a payout by hand; once it is marked, saying so again changes nothing."""
    reason = options["reason"] or STOPPED
    if options["paid"]:
        answer = ProviderAnswer(PayoutOutcome.CONFIRMED, reference=options["reference"])
        state, tag = Payout.State.CONFIRMED, BillingTag.ADMIN_PAYOUT_CONFIRM
    else:
        answer = ProviderAnswer(PayoutOutcome.REFUSED, failure=reason)
        state, tag = Payout.State.REVERSED, BillingTag.ADMIN_PAYOUT_REVERSE
    with transaction.atomic():
        payout = manual.settle(options["paid"] or options["failed"], answer, now=now)
        if payout.state != state:
            raise CommandRefused("payout_is_closed", f"The payout is {payout.state} already.")
        if payout.changed_at == now:
            _note(tag, payout, options["reason"])


def _hold(options: dict[str, Any]) -> None:
    reason = (options["reason"] or STOPPED) if options["hold"] else ""
    tag = BillingTag.ADMIN_PAYOUT_HOLD if options["hold"] else BillingTag.ADMIN_PAYOUT_APPROVE
    with transaction.atomic():
        payout = requests.hold(options["hold"] or options["release"], reason=reason)
        _note(tag, payout, options["reason"])


def _note(tag: BillingTag, payout: Payout, reason: str) -> None:
    trail.add(
        None,
        tag,
        organization_id=payout.organization_id,
        actor=ACTOR,
        data={
            "payout": str(payout.pk),
            "amount_cents": payout.amount_cents,
            "reason": reason[:300],
        },
    )


def _row(payout: Payout) -> dict[str, Any]:
    return {
        "id": str(payout.pk),
        "organization_id": payout.organization_id,
        "method": payout.method.kind,
        "account": payout.method.details.get("account", ""),
        "amount_cents": payout.amount_cents,
        "currency": payout.currency,
        "state": str(payout.state),
        "attempts": payout.attempts,
        "hold_reason": payout.hold_reason,
        "created_at": payout.created_at.isoformat(),
    }


def _cell(value: Any) -> Any:
    # An operator chooses the account's text, and a spreadsheet would run it as a formula.
    is_formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@"))
    return f"'{value}" if is_formula else value


def _csv(rows: list[dict[str, Any]]) -> str:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, COLUMNS)
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return buffer.getvalue()
