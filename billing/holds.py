"""Earnings are held for a while before they can be paid out."""

from datetime import UTC, datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Q, Sum

from billing import ledger
from billing.ledger import Posting
from billing.models.ledger import Account, AccountKind, Entry, Journal
from billing.models.payouts import Payout
from billing.money import MAX_UCR

DAY: Final = timedelta(days=1)


def release_all(*, now: datetime) -> int:
    """Release earnings of every operator after their hold; return the sum in µcr."""
    accounts = Account.objects.filter(kind=AccountKind.HELD, balance_ucr__gt=0)
    return sum(release(int(row.organization_id or 0), now=now) for row in list(accounts))


def release(organization_id: int, *, now: datetime) -> int:
    """Make an operator's earnings payable after their hold; return the sum in µcr.

    Amounts that were taken back reduce the oldest earnings first.
    """
    with transaction.atomic():
        held = (AccountKind.HELD, organization_id)
        account_id = ledger.locked([held])[held]
        young = Entry.objects.filter(
            account_id=account_id,
            amount_ucr__gt=0,
            journal__posted_at__gt=now - settings.BILLING.hold_days * DAY,
        )
        # Earnings that an appeal restored are as old as they were.
        young = young.exclude(journal__kind=Journal.Kind.REINSTATEMENT).aggregate(
            total=Sum("amount_ucr")
        )["total"]
        amount_ucr = ledger.balance(*held) - int(young or 0)
        if amount_ucr <= 0:
            return 0
        ledger.post(
            Journal.Kind.RELEASE,
            f"release:{organization_id}:{now.isoformat()}",
            [
                Posting(*held, -amount_ucr),
                Posting(AccountKind.PAYABLE, organization_id, amount_ucr),
            ],
        )
        return amount_ucr


def paid_until(organization_id: int) -> datetime:
    """Return the time up to which an operator's earnings were paid out, the oldest first.

    A payout takes what the releases before it made payable; what was held then, it left.
    """
    paid = Payout.objects.filter(organization_id=organization_id).exclude(
        Q(state=Payout.State.REVERSED) | Q(state=Payout.State.DEBITED, attempts=0)
    )
    last = paid.order_by("-created_at").first()
    releases = Journal.objects.filter(
        kind=Journal.Kind.RELEASE,
        entries__account__kind=AccountKind.PAYABLE,
        entries__account__organization_id=organization_id,
    )
    if last is not None:
        releases = releases.filter(posted_at__lte=last.created_at)
    release = releases.order_by("-posted_at").first()
    if last is None or release is None:
        return datetime.min.replace(tzinfo=UTC)
    return release.posted_at - settings.BILLING.hold_days * DAY


def forfeit(
    organization_id: int, max_ucr: int = MAX_UCR, /, *, key: str, reason: str, actor: str
) -> int:
    """Take an operator's earnings that are not paid out; return the sum in µcr, 0 if done before.

    max_ucr: no more than that, held ones first. They stay in an account of their own, so that an
    appeal can give them back.
    """
    with transaction.atomic():
        kinds = (AccountKind.HELD, AccountKind.PAYABLE)
        ledger.locked([(kind, organization_id) for kind in kinds])
        parts: dict[AccountKind, int] = {}
        for kind in kinds:
            left_ucr = max_ucr - sum(parts.values())
            parts[kind] = min(max(0, ledger.balance(kind, organization_id)), left_ucr)
        total_ucr = sum(parts.values())
        if not total_ucr:
            return 0
        postings = [Posting(kind, organization_id, -part) for kind, part in parts.items()]
        postings.append(Posting(AccountKind.FORFEITED, organization_id, total_ucr))
        journal = ledger.post(Journal.Kind.FORFEIT, key, postings, reason=reason, actor=actor)
        return total_ucr if journal is not None else 0


def reinstate(
    organization_id: int,
    max_ucr: int = MAX_UCR,
    /,
    *,
    key: str,
    reason: str,
    actor: str,
    forfeit_key: str = "",
) -> int:
    """Restore forfeited earnings after an appeal; return the sum in µcr, 0 if done before.

    max_ucr: the maximum; refunds may have taken some of it.
    forfeit_key: of the one journal that is undone; all of them without it.

    Held earnings return to their hold with the remaining time. The amount returned to ``payable``
    is at most what was forfeited from ``payable``.
    """
    with transaction.atomic():
        forfeited = (AccountKind.FORFEITED, organization_id)
        ledger.locked([forfeited])
        amount_ucr = min(ledger.balance(*forfeited), max_ucr)
        if not amount_ucr:
            return 0
        payable_ucr = min(amount_ucr, _forfeited_after_the_hold(organization_id, forfeit_key))
        journal = ledger.post(
            Journal.Kind.REINSTATEMENT,
            key,
            [
                Posting(*forfeited, -amount_ucr),
                Posting(AccountKind.PAYABLE, organization_id, payable_ucr),
                Posting(AccountKind.HELD, organization_id, amount_ucr - payable_ucr),
            ],
            reason=reason,
            actor=actor,
        )
        return amount_ucr if journal is not None else 0


def _forfeited_after_the_hold(organization_id: int, forfeit_key: str) -> int:
    """Return how much of an operator's forfeited earnings was payable, in µcr.

    forfeit_key: '' for all; otherwise of one node, which must not end the hold of another's.
    """
    kinds = (Journal.Kind.FORFEIT, Journal.Kind.REINSTATEMENT)
    entries = Entry.objects.filter(
        account__kind=AccountKind.PAYABLE,
        account__organization_id=organization_id,
        journal__kind__in=kinds,
    )
    if forfeit_key:
        entries = entries.filter(journal__key=forfeit_key)
    return max(0, -(entries.aggregate(total=Sum("amount_ucr"))["total"] or 0))
