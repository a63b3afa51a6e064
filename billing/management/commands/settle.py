"""``manage.py settle``: charge the usage of the edge cache."""

from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from billing.money import credits_text
from billing.service import states
from billing.usage import charges_and_shares, usage_import
from common.commands import CommandResult, OpsCommand
from edgecache.api.errors import CacheUnavailable


class Command(OpsCommand):
    """Import usage lines and settle them."""

    help = (
        "Import usage from the cache's brain and charge it: consumers pay, operators earn. Runs "
        "every few minutes by itself; running it again changes nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="Price what was imported before, and keep nothing.",
        )

    def run(self, options: dict[str, Any]) -> CommandResult:
        is_dry_run, warning, imported = options["dry_run"], "", usage_import.UsageImportResult()
        if is_dry_run:
            warning = " Nothing was imported or kept."
            settled = charges_and_shares.preview()
        else:
            now = timezone.now()
            try:
                imported = usage_import.import_usage(now=now, is_complete=True)
            except CacheUnavailable:
                warning = " The brain does not answer: nothing new was imported."
            except ValueError as exc:
                warning = f" A page of the brain was refused: {exc}."
            settled = charges_and_shares.settle()
            states.refresh_all(now=now)
        facts = {
            "imported": imported.lines,
            "rejected": imported.rejected,
            "settled": settled.lines,
            "charged_ucr": settled.charged_ucr,
            "shares_ucr": settled.shares_ucr,
            "brain_answers": not warning or is_dry_run,
            "dry_run": is_dry_run,
        }
        text = (
            f"{imported.lines} lines imported, {imported.rejected} rejected; {settled.lines} "
            f"charged: {credits_text(settled.charged_ucr)} credits, of these "
            f"{credits_text(settled.shares_ucr)} to operators.{warning}"
        )
        return CommandResult(facts, text)
