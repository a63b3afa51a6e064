"""``manage.py setrate``: show the rates, or set one from a later hour on."""

from argparse import ArgumentParser, ArgumentTypeError
from datetime import UTC, datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from audit import trail
from billing.audit_tags import BillingTag
from billing.models.rates import Rate, UsageKind
from billing.usage import rates
from common.commands import CommandRefused, CommandResult, OpsCommand
from edgecache.management.arguments import table

COLUMNS = ("kind", "rate_ucr", "begins_at")


class Command(OpsCommand):
    """Show or set rates."""

    help = (
        "Set what a hit, a miss, a byte of egress or a byte stored for a month costs, in µcr "
        "(1 credit is 1,000,000), from a full hour in the future on. Usage keeps the rate of its "
        "hour. Without arguments all rates are listed."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("kind", nargs="?", choices=UsageKind.values, help="What is priced.")
        parser.add_argument("rate_ucr", nargs="?", type=int, help="Its price in µcr.")
        parser.add_argument(
            "--from",
            dest="begins_at",
            type=_moment,
            metavar="TIME",
            help="When it begins, such as 2027-01-01T00:00Z.",
        )
        parser.add_argument("--dry-run", action="store_true", help="Check, and set nothing.")

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Set a rate if one is named, then list."""
        given = [options[name] is not None for name in COLUMNS]
        if any(given):
            if not all(given):
                raise CommandRefused("incomplete", "Name the kind, the price and --from.")
            with transaction.atomic():
                _set(options)
        rows = [
            {"kind": row.kind, "rate_ucr": row.rate_ucr, "begins_at": row.begins_at.isoformat()}
            for row in Rate.objects.all()
        ]
        return CommandResult({"rates": rows}, table(rows, COLUMNS))


def _set(options: dict[str, Any]) -> None:
    kind, rate_ucr, begins_at = (options[name] for name in COLUMNS)
    rates.set_rate(
        UsageKind(kind),
        rate_ucr,
        begins_at=begins_at,
        now=timezone.now(),
        is_dry_run=options["dry_run"],
    )
    if not options["dry_run"]:
        data = {"kind": kind, "rate_ucr": rate_ucr, "begins_at": begins_at.isoformat()}
        trail.add(None, BillingTag.ADMIN_RATE_SET, actor="command", data=data)


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise ArgumentTypeError("must be a time such as 2027-01-01T00:00Z") from None
