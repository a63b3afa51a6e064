"""Spend caps: what an organization's usage of a month (UTC) may cost.

At 80 % and at 100 % its admins get a mail, once for each cap and month. At 100 % other operators'
nodes stop serving until the next month or a higher cap.
"""

from collections.abc import Callable
from datetime import date, datetime
from typing import Final, LiteralString

from django.conf import settings
from django.db import connection, transaction

from accounts.organization_admins import notify_admins
from billing import ledger, statements
from billing.models.ledger import AccountKind
from billing.models.service import ServiceState, SpendCap
from billing.money import UCR_PER_CENT
from outbox.webhooks import events

# The first mail comes at four fifths.
DUE: Final[LiteralString] = """
SELECT c.organization_id FROM billing_spendcap c
LEFT JOIN billing_servicestate s USING (organization_id)
CROSS JOIN LATERAL (SELECT coalesce(sum(charged_ucr), 0) AS spent
    FROM (SELECT organization_id, day, charged_ucr FROM billing_consumerday
        UNION ALL SELECT organization_id, day, charged_ucr FROM billing_sqlday) d
    WHERE d.organization_id = c.organization_id AND d.day >= %(month)s
        AND d.day < %(month)s + interval '1 month') used
WHERE CASE WHEN spent >= c.cap_ucr THEN s.capped_month IS DISTINCT FROM %(month)s
    ELSE spent * 5 >= c.cap_ucr * 4 AND c.warned_month IS DISTINCT FROM %(month)s END
UNION SELECT organization_id FROM billing_servicestate WHERE capped_month <> %(month)s
"""


def month_of(now: datetime) -> date:
    """Return the first day of a moment's month."""
    return now.date().replace(day=1)


def current(organization_id: int) -> SpendCap | None:
    return SpendCap.objects.filter(pk=organization_id).first()


def replace(
    organization_id: int,
    cap_cents: int | None,
    *,
    by: str,
    now: datetime,
    check: Callable[[], object] | None = None,
) -> None:
    """Set the cap, or remove it (None); ``states.refresh`` applies it.

    check: called under the cap's lock before the change, and may refuse it.
    """
    with transaction.atomic():
        ledger.locked([(AccountKind.DEBT, organization_id)])
        if check is not None:
            check()
        SpendCap.objects.filter(pk=organization_id).delete()
        if cap_cents is not None:
            SpendCap.objects.create(
                organization_id=organization_id,
                cap_ucr=cap_cents * UCR_PER_CENT,
                changed_at=now,
                changed_by=by,
            )


def apply(state: ServiceState, *, now: datetime) -> None:
    """Note in a locked state whether the cap is reached, and queue the mails that are due."""
    cap, month = current(state.organization_id), month_of(now)
    spent_ucr = 0 if cap is None else statements.spent(state.organization_id, month)
    state.capped_month = month if cap is not None and spent_ucr >= cap.cap_ucr else None
    if cap is None:
        return
    if state.capped_month is not None and cap.reached_month != month:
        cap.reached_month = cap.warned_month = month
        _notify(cap, 100)
    elif spent_ucr * 5 >= cap.cap_ucr * 4 and cap.warned_month != month:
        cap.warned_month = month
        _notify(cap, 80)


def due(*, now: datetime) -> set[int]:
    """Return the organizations for which ``apply`` changes something."""
    with connection.cursor() as cursor:
        cursor.execute(DUE, {"month": month_of(now)})
        return {row[0] for row in cursor.fetchall()}


def _notify(cap: SpendCap, percent: int) -> None:
    cap.save()
    if percent == 100:
        data = {
            "quota": "spend_cap",
            "limit_cents": cap.cap_ucr // UCR_PER_CENT,
            "currency": settings.BILLING.currency,
        }
        events.emit(cap.organization_id, "quota.reached", data)
    notify_admins(
        cap.organization_id,
        "spend_cap_reached" if percent == 100 else "spend_cap_near",
        cap=f"{cap.cap_ucr // UCR_PER_CENT / 100:.2f}",
        currency=settings.BILLING.currency,
    )
