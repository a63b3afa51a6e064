"""After a restore: payouts wait until each is reconciled with its provider.

Payments since the backup are not known here: their amounts look payable, and a payout that was
being sent may have arrived, or have been reversed and paid as part of another one. So every open
payout is held, and none is sent or can be requested, until staff confirms that both sides agree.
"""

from datetime import datetime
from typing import Final

from django.db import transaction
from django.db.models import Value
from django.db.models.functions import Greatest
from django.utils import timezone

from billing.errors import PayoutRefused
from billing.models.payouts import Payout
from billing.models.usage import Progress
from billing.payouts import requests
from billing.payouts.providers import (
    PayoutOutcome,
    PayoutProviderUnavailable,
    ProviderAnswer,
    sender_of,
)

REASON: Final = requests.RESTORED
# A text for the operator, who requests the payout again.
NOT_PAID: Final = "It had not been paid when the platform was restored from a backup."


def begin() -> int:
    """Stop all payouts; return how many were being sent."""
    with transaction.atomic():
        now = timezone.now()
        Progress.objects.update_or_create(
            name=requests.RECONCILING, defaults={"position": 1, "updated_at": now}
        )
        # As if each had been sent: from now on the provider is asked before it is sent.
        rows = Payout.objects.filter(state__in=requests.OPEN)
        rows.update(attempts=Greatest("attempts", Value(1)))
        # Holds of staff stay; those of quarantines would end by themselves, and send the payout.
        held = rows.filter(hold_reason__regex=f"^({requests.QUARANTINED}|{requests.HELD_BEFORE}|)$")
        return held.update(hold_reason=REASON)


def ask_providers(*, now: datetime) -> list[Payout]:
    """Settle payouts that providers know, reverse the others; return how many still wait.

    What was not paid is payable again, less what staff records as paid since. Payouts by hand wait
    for staff, who alone know.
    """
    for payout in _held():
        if payout.method.kind == requests.BY_HAND:
            continue
        try:
            answer = sender_of(payout.method.kind).find(payout)
        except PayoutProviderUnavailable:
            continue
        if answer.outcome == PayoutOutcome.UNKNOWN:
            answer = ProviderAnswer(PayoutOutcome.REFUSED, failure=NOT_PAID)
        with transaction.atomic():
            requests.settle_answer(payout.pk, answer, now=now)
            Payout.objects.filter(pk=payout.pk).update(hold_reason="")
    return _held()


def finish() -> bool:
    """Let payouts be requested again; True if they were stopped.

    Raises PayoutRefused while one waits.
    """
    waiting = len(_held())
    if waiting:
        raise PayoutRefused(f"{waiting} payouts are not reconciled yet.")
    return bool(Progress.objects.filter(pk=requests.RECONCILING).delete()[0])


def _held() -> list[Payout]:
    rows = Payout.objects.filter(state__in=requests.OPEN, hold_reason=REASON)
    return list(rows.select_related("method").order_by("id"))
