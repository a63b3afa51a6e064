"""Payouts by hand: staff pays what ``runpayouts --csv`` lists and marks it as paid."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from billing.errors import PayoutRefused
from billing.models.payouts import Payout
from billing.payouts import reconciliation, requests
from billing.payouts.providers import PayoutOutcome, ProviderAnswer
from common.errors import FieldError, InvalidRequest

MAX_ACCOUNT_CHARS: Final = 200
SHOWN: Final = 4


def settle(payout_id: UUID, answer: ProviderAnswer, *, now: datetime) -> Payout:
    """Record what the bank did with a payout, as staff says; repeating it changes nothing.

    Raises PayoutNotFound, and PayoutRefused for a provider's payout, which would be paid twice, and
    for one that is held and said to be paid. One that waits since a restore may have been paid. A
    payment that staff recorded by mistake can be said to have failed.
    """
    with transaction.atomic():
        payout = requests.locked(payout_id)
        # The platform's own have an attempt.
        is_recorded = payout.state == Payout.State.CONFIRMED and not payout.attempts
        if payout.method.kind != requests.BY_HAND and not is_recorded:
            raise PayoutRefused("Its provider reports what becomes of it.")
        is_held = payout.hold_reason not in {"", reconciliation.REASON}
        if is_held and payout.state in requests.OPEN and answer.outcome == PayoutOutcome.CONFIRMED:
            raise PayoutRefused("The payout is held: approve it first.")
        return requests.settle_answer(payout_id, answer, now=now)


class Manual:
    """The details have one field, ``account``: where the money is sent, such as an IBAN."""

    def checked(self, details: Mapping[str, Any], organization_id: int) -> dict[str, Any]:
        """Return the account without surrounding blanks."""
        account = str(details.get("account", "")).strip()
        if (
            set(details) != {"account"}
            or not account.isprintable()
            or not 0 < len(account) <= MAX_ACCOUNT_CHARS
        ):
            message = f"One line of at most {MAX_ACCOUNT_CHARS} characters, such as an IBAN."
            raise InvalidRequest(fields=[FieldError("details.account", "invalid", message)])
        return {"account": account}

    def label(self, details: Mapping[str, Any]) -> str:
        """Return the last characters of the account."""
        return f"…{str(details['account'])[-SHOWN:]}"

    def send(self, payout: Payout) -> ProviderAnswer:
        """Wait for staff."""
        return ProviderAnswer(PayoutOutcome.SENT)

    def find(self, payout: Payout) -> ProviderAnswer:
        """Wait for staff: only they know."""
        return ProviderAnswer(PayoutOutcome.SENT)
