"""``manage.py exportstatement``: an operator's statement as CSV."""

from argparse import ArgumentParser, ArgumentTypeError
from datetime import date, timedelta
from typing import Any

from billing import statements
from billing.api import csv_statement
from billing.money import credits_text
from common.commands import CommandResult, OpsCommand


class Command(OpsCommand):
    help = (
        "Print an operator's statement of a month as CSV; "
        "`python -m billing.verify_statement FILE` checks it. With --json only the totals."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("organization", type=int, help="Id of the operator's organization.")
        parser.add_argument("month", type=_month, help="Such as 2026-11.")

    def run(self, options: dict[str, Any]) -> CommandResult:
        """Print the lines as they are read."""
        organization_id, month = options["organization"], options["month"]
        totals = statements.statement_totals(organization_id, month)
        if not options["json"]:
            for part in csv_statement.rows(organization_id, month):
                self.stdout.write(part, ending="")
            self.stderr.write(
                f"{totals['lines']} lines, {credits_text(totals['amount_ucr'])} credits."
            )
        return CommandResult({"month": f"{month:%Y-%m}", **totals}, "")


def _month(text: str) -> date:
    try:
        month = date.fromisoformat(f"{text}-01")
        # It has an end.
        _ = month + timedelta(days=31)
    except (ValueError, OverflowError):
        raise ArgumentTypeError("must be a month such as 2026-11") from None
    return month
