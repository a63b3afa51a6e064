"""``manage.py verifyledger``: check that the ledger adds up."""

from typing import Any

from billing import ledger
from common.commands import CommandRefused, CommandResult, OpsCommand


class Command(OpsCommand):
    help = (
        "Check that every journal adds up to zero, every balance is the sum of its entries, and "
        "the fees are those of the usage lines. The message names the first fault. Runs each night "
        "by itself."
    )

    def run(self, options: dict[str, Any]) -> CommandResult:
        result = ledger.verify()
        if result.fault:
            raise CommandRefused("ledger_broken", result.fault, journals=result.journals)
        facts = {"journals": result.journals, "entries": result.entries}
        return CommandResult(
            facts, f"{result.journals} journals, {result.entries} entries: all add up."
        )
