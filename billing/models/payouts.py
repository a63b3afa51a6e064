"""How operators are paid, and each payout's way."""

from django.db import models
from django.db.models.functions import Now

from common.ids import uuid7
from common.models import ModelWithoutLabel


class PayoutMethod(models.Model):
    """An organization's way to be paid; the newest that is not removed counts.

    kind: a name in settings.PAYOUT_METHODS. details: what the method needs, such as a
    connected account; never shown whole. usable_from: the rest after a change, during which a
    stolen session's change is noticed.
    """

    organization_id = models.BigIntegerField()
    kind = models.CharField(max_length=32)
    details = models.JSONField(default=dict)
    created_at = models.DateTimeField(db_default=Now())
    usable_from = models.DateTimeField()
    removed_at = models.DateTimeField(null=True, blank=True)
    created_by = models.CharField(max_length=254)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["organization_id"],
                condition=models.Q(removed_at=None),
                name="payout_method_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} of organization {self.organization_id}"


class Payout(models.Model):
    """A payment of earnings: debited → sent → confirmed, or reversed from either.

    amount_cents: whole cents; amount_ucr: the same in µcr. reference: the provider's.
    failure: why it was reversed. hold_reason: not empty while staff has stopped it. attempts: of
    sending.
    """

    class State(models.TextChoices):
        """Where it is: debited in the ledger, with the provider, arrived, or given back."""

        DEBITED = "debited"
        SENT = "sent"
        CONFIRMED = "confirmed"
        REVERSED = "reversed"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization_id = models.BigIntegerField()
    method = models.ForeignKey(PayoutMethod, on_delete=models.PROTECT)
    amount_cents = models.BigIntegerField()
    amount_ucr = models.BigIntegerField()
    currency = models.CharField(max_length=3)
    state = models.CharField(max_length=10, choices=State.choices)
    reference = models.CharField(max_length=200, blank=True, db_default="")
    failure = models.CharField(max_length=500, blank=True, db_default="")
    hold_reason = models.CharField(max_length=500, blank=True, db_default="")
    attempts = models.IntegerField(db_default=0)
    requested_by = models.CharField(max_length=254)
    created_at = models.DateTimeField(db_default=Now())
    changed_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            # One at a time: two concurrent requests cannot pay twice.
            models.UniqueConstraint(
                fields=["organization_id"],
                condition=models.Q(state__in=["debited", "sent"]),
                name="payout_open_once",
            ),
            models.CheckConstraint(condition=models.Q(amount_cents__gt=0), name="payout_positive"),
        ]
        indexes = [models.Index(fields=["organization_id", "created_at"], name="payout_by_time")]

    def __str__(self) -> str:
        return f"{self.amount_cents} cents to organization {self.organization_id}"


class ConnectedAccount(ModelWithoutLabel):
    """An account at a payment provider that the platform opened for an organization.

    kind: as of the payout method. account: the provider's id, empty until it has answered.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization_id = models.BigIntegerField()
    kind = models.CharField(max_length=32)
    account = models.CharField(max_length=100, blank=True, db_default="", default="")
    created_by = models.CharField(max_length=254)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["organization_id", "kind"], name="connected_account_once"
            ),
            models.UniqueConstraint(
                fields=["kind", "account"],
                condition=~models.Q(account=""),
                name="connected_account_of_one",
            ),
        ]
