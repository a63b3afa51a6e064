"""A bank in a folder, with a file for each payment; and what halts processes in the middle."""

import os
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.utils import timezone

FOLDER = "TEST_BANK_FOLDER"
OPERATOR = 9
# 25.00
EARNED_UCR = 2500 * 10**9


class Bank:
    """Pays by creating a file; a second payment of one payout fails."""

    def checked(self, details: Mapping[str, Any], organization_id: int) -> dict[str, Any]:
        """Return the details."""
        return dict(details)

    def label(self, details: Mapping[str, Any]) -> str:
        """Return a label."""
        return "bank"

    def send(self, payout: Any) -> Any:
        """Pay, and wait before or after as a file says."""
        from billing.payouts.providers import PayoutOutcome, ProviderAnswer

        wait_at("before")
        with (folder() / f"paid-{payout.pk}").open("x") as file:
            file.write(str(payout.amount_cents))
        wait_at("after")
        return ProviderAnswer(PayoutOutcome.SENT, reference="bank")

    def find(self, payout: Any) -> Any:
        """Look for the file."""
        from billing.payouts.providers import PayoutOutcome, ProviderAnswer

        is_paid = (folder() / f"paid-{payout.pk}").exists()
        return ProviderAnswer(
            PayoutOutcome.CONFIRMED if is_paid else PayoutOutcome.UNKNOWN, reference="bank"
        )


def folder() -> Path:
    """Return where payments are."""
    return Path(os.environ[FOLDER])


def wait_at(moment: str) -> None:
    """Halt while a file says so; another file says that a process has halted."""
    if (folder() / f"wait-{moment}").exists():
        (folder() / f"waits-{moment}").touch()
        while (folder() / f"wait-{moment}").exists():
            time.sleep(0.02)


def request_payout() -> None:
    """Set the method, let it rest, earn 25.00 and ask for them."""
    from billing import ledger
    from billing.ledger import Posting
    from billing.models.ledger import AccountKind, Journal
    from billing.payouts import methods, requests
    from common.scoping import within_organization

    now = timezone.now()
    with within_organization(OPERATOR):
        methods.replace(OPERATOR, "bank", {"account": "x"}, by="x", now=now - timedelta(days=4))
        postings = [
            Posting(AccountKind.PAYABLE, OPERATOR, EARNED_UCR),
            Posting(AccountKind.FEES, None, -EARNED_UCR),
        ]
        ledger.post(Journal.Kind.RELEASE, f"earned:{now.isoformat()}", postings)
        requests.request(OPERATOR, by="x", now=now)
