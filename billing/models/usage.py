"""Usage as the brain metered it, and its charges. Both are append-only (triggers)."""

from django.db import models
from django.db.models.functions import Now

from billing.models.ledger import Journal
from billing.models.rates import UsageKind
from common.models import ModelWithoutLabel


class UsageLine(models.Model):
    """A quantity of one kind that one bucket used through one node, or one environment by SQL.

    line_id and kind: unique; the brain chose the id, so that importing it twice changes nothing.
    operator_id: the organization that runs the node; None is the platform, or no node at all.
    used_at: the hour or minute of the use; it decides the rate.
    quantity: in the kind's unit.
    is_creditable: False for traffic that earns its operator nothing.
    """

    line_id = models.UUIDField()
    kind = models.CharField(max_length=16, choices=UsageKind.choices)
    used_at = models.DateTimeField()
    organization_id = models.BigIntegerField()
    environment_pk = models.BigIntegerField()
    bucket_id = models.BigIntegerField()
    bucket_name = models.CharField(max_length=63, blank=True, db_default="")
    node_id = models.UUIDField(null=True)
    operator_id = models.BigIntegerField(null=True)
    quantity = models.DecimalField(max_digits=40, decimal_places=0)
    is_creditable = models.BooleanField(db_default=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["line_id", "kind"], name="usage_line_once"),
            models.CheckConstraint(condition=models.Q(quantity__gte=0), name="usage_not_negative"),
        ]
        indexes = [
            models.Index(fields=["organization_id", "used_at"], name="usage_of_organization"),
            models.Index(
                fields=["operator_id", "used_at"],
                condition=models.Q(operator_id__isnull=False),
                name="usage_of_operator",
            ),
        ]

    def __str__(self) -> str:
        """Return its id in statements."""
        return f"{self.line_id}/{self.kind}"


class Charge(ModelWithoutLabel):
    """What a usage line cost, who paid it and the operator's share. All amounts in µcr.

    organization_id: the line's, repeated so that an index finds debts and paid lines.
    charge_ucr: granted_ucr + paid_ucr (from granted and paid credits) + unpaid_ucr (not covered).
    share_ucr: the operator's part of paid_ucr, by share_ppm, rounded down.
    """

    line = models.OneToOneField(UsageLine, on_delete=models.PROTECT, primary_key=True)
    organization_id = models.BigIntegerField()
    journal = models.ForeignKey(Journal, on_delete=models.PROTECT, db_index=False)
    rate_ucr = models.BigIntegerField()
    charge_ucr = models.BigIntegerField()
    granted_ucr = models.BigIntegerField()
    paid_ucr = models.BigIntegerField()
    unpaid_ucr = models.BigIntegerField()
    share_ppm = models.IntegerField()
    share_ucr = models.BigIntegerField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(
                    charge_ucr=models.F("granted_ucr")
                    + models.F("paid_ucr")
                    + models.F("unpaid_ucr")
                ),
                name="charge_adds_up",
            )
        ]
        indexes = [
            # Debts are paid from the oldest line on, and reopened from the newest one back.
            models.Index(
                fields=["organization_id", "line"],
                condition=models.Q(unpaid_ucr__gt=0),
                name="charge_unpaid",
            ),
            models.Index(
                fields=["organization_id", "line"],
                condition=models.Q(paid_ucr__gt=0),
                name="charge_paid",
            ),
        ]


class Adjustment(ModelWithoutLabel):
    """A later change of a charge: paid after all, charged back or refunded. Amounts are added.

    A line's state is its charge plus all its adjustments.
    """

    class Kind(models.TextChoices):
        LATE_PAYMENT = "late_payment"
        CHARGEBACK = "chargeback"
        REFUND = "refund"

    charge = models.ForeignKey(Charge, on_delete=models.PROTECT, related_name="adjustments")
    organization_id = models.BigIntegerField()
    journal = models.ForeignKey(Journal, on_delete=models.PROTECT, db_index=False)
    kind = models.CharField(max_length=12, choices=Kind.choices)
    granted_ucr = models.BigIntegerField(db_default=0)
    paid_ucr = models.BigIntegerField(db_default=0)
    unpaid_ucr = models.BigIntegerField(db_default=0)
    share_ucr = models.BigIntegerField(db_default=0)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [
            models.Index(fields=["journal"], name="adjustment_of_journal"),
            models.Index(
                fields=["organization_id", "charge"],
                condition=models.Q(unpaid_ucr__gt=0),
                name="adjustment_unpaid",
            ),
            models.Index(
                fields=["organization_id", "charge"],
                condition=models.Q(paid_ucr__gt=0),
                name="adjustment_paid",
            ),
        ]


class RejectedLine(models.Model):
    """A usage line of the brain that was not accepted, and why. It costs and earns nothing."""

    line_id = models.CharField(max_length=64)
    reason = models.CharField(max_length=64)
    line = models.JSONField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["line_id", "reason"], name="rejected_line_once")
        ]

    def __str__(self) -> str:
        return f"{self.line_id}: {self.reason}"


class Progress(ModelWithoutLabel):
    """How far a repeated task has come: ``import`` by the brain's sequence, ``settle`` by line."""

    name = models.CharField(max_length=16, primary_key=True)
    position = models.BigIntegerField(db_default=0)
    updated_at = models.DateTimeField(db_default=Now())

    @staticmethod
    def lock(name: str) -> "Progress":
        """Return a task's row, locked until the transaction ends: one process runs it at a time."""
        Progress.objects.bulk_create([Progress(name=name)], ignore_conflicts=True)
        return Progress.objects.select_for_update().get(pk=name)
