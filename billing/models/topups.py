"""Credits that consumers buy, and payments that are reversed."""

from django.db import models
from django.db.models.functions import Now

from common.ids import uuid7


class TopUp(models.Model):
    """A purchase of credits: asked for, then paid or left.

    session: the provider's id of the page where it is paid. payment: the provider's id of the
    payment, empty until it has arrived; it is the reference of the ledger's journal.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization_id = models.BigIntegerField()
    amount_cents = models.BigIntegerField()
    currency = models.CharField(max_length=3)
    session = models.CharField(max_length=200, blank=True, db_default="")
    payment = models.CharField(max_length=150, blank=True, db_default="")
    requested_by = models.CharField(max_length=254)
    created_at = models.DateTimeField(db_default=Now())
    paid_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["payment"], condition=~models.Q(payment=""), name="top_up_payment_once"
            ),
            models.CheckConstraint(condition=models.Q(amount_cents__gt=0), name="top_up_positive"),
        ]
        indexes = [models.Index(fields=["organization_id", "created_at"], name="top_up_by_time")]

    def __str__(self) -> str:
        return f"{self.amount_cents} cents of organization {self.organization_id}"


class PaymentReversal(models.Model):
    """A provider's report of a reversed payment, which may arrive before the payment.

    key: unique; the provider's id of a dispute, or of a charge, for which amount_cents is the sum
    refunded so far.
    """

    key = models.CharField(max_length=150, unique=True)
    payment = models.CharField(max_length=150, db_index=True)
    amount_cents = models.BigIntegerField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(amount_cents__gt=0), name="payment_reversal_positive"
            )
        ]

    def __str__(self) -> str:
        return f"{self.amount_cents} cents of {self.payment}"
