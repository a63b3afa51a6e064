"""``manage.py settle``: charge the usage of the edge cache."""

import contextlib
from argparse import ArgumentParser
from typing import Any

from django.db import transaction
from django.utils import timezone

from edgecache.api.errors import CacheUnavailable
from edgecache.billing import settlement, usage_import
from edgecache.billing.money import credits_text
from platform_site.lib.commands import OpsCommand, Outcome


class Command(OpsCommand):
    """Import usage lines and settle them."""

    help = (
        "Import usage from the cache's brain and charge it: consumers pay, operators earn. Runs "
        "every five minutes by itself; running it again changes nothing. With --dry-run the "
        "amounts are computed and nothing is kept."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options."""
        parser.add_argument("--dry-run", action="store_true", help="Compute, and keep nothing.")

    def run(self, options: dict[str, Any]) -> Outcome:
        """Import, then settle."""
        with transaction.atomic() if options["dry_run"] else _no_transaction():
            warning = ""
            imported = usage_import.Imported()
            try:
                imported = usage_import.import_usage(now=timezone.now())
            except CacheUnavailable:
                warning = " The brain does not answer: nothing new was imported."
            except ValueError as exc:
                warning = f" A page of the brain was refused: {exc}."
            settled = settlement.settle()
            if options["dry_run"]:
                transaction.set_rollback(True)
        facts = {
            "imported": imported.lines,
            "rejected": imported.rejected,
            "settled": settled.lines,
            "charged_ucr": settled.charged_ucr,
            "shares_ucr": settled.shares_ucr,
            "brain_answers": not warning,
            "dry_run": options["dry_run"],
        }
        text = (
            f"{imported.lines} lines imported, {imported.rejected} rejected; {settled.lines} "
            f"charged: {credits_text(settled.charged_ucr)} credits, of these "
            f"{credits_text(settled.shares_ucr)} to operators.{warning}"
        )
        return Outcome(facts, text)


def _no_transaction() -> contextlib.nullcontext[None]:
    # Each batch is a transaction of its own.
    return contextlib.nullcontext()
