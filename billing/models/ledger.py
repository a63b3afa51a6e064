"""The ledger: double entry, append-only, in µcr. The database refuses unbalanced journals.

A positive entry raises what the account's owner has; all entries of a journal add up to zero.
"""

from typing import Final

from django.db import models
from django.db.models.functions import Now

from common.ids import uuid7


class AccountKind(models.TextChoices):
    """What an account counts.

    An organization has granted, paid (credits), debt (zero or less: charges that nothing covers
    yet), held and payable (earnings before and after the hold; a chargeback of paid-out earnings
    makes payable negative), and forfeited. The platform has grants, cash, fees and sent (payouts in
    progress).
    """

    GRANTED = "granted"
    PAID = "paid"
    DEBT = "debt"
    HELD = "held"
    PAYABLE = "payable"
    FORFEITED = "forfeited"
    GRANTS = "grants"
    CASH = "cash"
    FEES = "fees"
    SENT = "sent"


NEVER_NEGATIVE: Final = ("granted", "paid", "held", "forfeited", "sent")
OF_PLATFORM: Final = ("grants", "cash", "fees", "sent")


class Account(models.Model):
    """One account. organization_id: None is the platform's own.

    balance_ucr: the sum of its entries, kept by a trigger; ``verifyledger`` compares the two.
    """

    kind = models.CharField(max_length=12, choices=AccountKind.choices)
    organization_id = models.BigIntegerField(null=True)
    balance_ucr = models.BigIntegerField(db_default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "organization_id"], name="account_once", nulls_distinct=False
            ),
            models.CheckConstraint(
                condition=models.Q(balance_ucr__gte=0) | ~models.Q(kind__in=NEVER_NEGATIVE),
                name="account_not_overdrawn",
            ),
            models.CheckConstraint(
                condition=models.Q(balance_ucr__lte=0) | ~models.Q(kind="debt"),
                name="account_debt_not_positive",
            ),
            models.CheckConstraint(
                condition=models.Q(kind__in=OF_PLATFORM, organization_id__isnull=True)
                | (~models.Q(kind__in=OF_PLATFORM) & models.Q(organization_id__isnull=False)),
                name="account_has_its_owner",
            ),
        ]

    def __str__(self) -> str:
        owner = (
            "platform" if self.organization_id is None else f"organization {self.organization_id}"
        )
        return f"{self.kind} of {owner}"


class Journal(models.Model):
    """An event that moves money. key: unique; posting it again is refused.

    actor: who decided, such as ``staff:<e-mail>`` or ``task``.
    reason: a sentence for people.
    """

    class Kind(models.TextChoices):
        SETTLEMENT = "settlement"
        GRANT = "grant"
        TOP_UP = "top_up"
        LATE_PAYMENT = "late_payment"
        CHARGEBACK = "chargeback"
        REFUND = "refund"
        RELEASE = "release"
        FORFEIT = "forfeit"
        REINSTATEMENT = "reinstatement"
        PAYOUT = "payout"
        PAYOUT_CONFIRMED = "payout_confirmed"
        PAYOUT_REVERSED = "payout_reversed"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    kind = models.CharField(max_length=20, choices=Kind.choices)
    key = models.CharField(max_length=200, unique=True)
    posted_at = models.DateTimeField(db_default=Now())
    reason = models.CharField(max_length=500, blank=True, db_default="")
    actor = models.CharField(max_length=254, db_default="task")

    class Meta:
        indexes = [models.Index(fields=["posted_at"], name="journal_by_time")]

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"


class Entry(models.Model):
    """One side of a journal. amount_ucr: not zero."""

    journal = models.ForeignKey(Journal, on_delete=models.PROTECT, related_name="entries")
    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="entries")
    amount_ucr = models.BigIntegerField()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=~models.Q(amount_ucr=0), name="entry_not_zero")
        ]

    def __str__(self) -> str:
        return f"{self.amount_ucr} µcr"
