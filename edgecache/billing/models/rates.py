"""What a unit of usage costs."""

from django.db import models
from django.db.models.functions import Now


class UsageKind(models.TextChoices):
    """What is metered. Units: responses, responses, bytes, byte-hours."""

    HIT = "hit"
    MISS = "miss"
    EGRESS = "egress"
    STORAGE = "storage"


class Rate(models.Model):
    """The price of a kind of usage from a full UTC hour on, until a later rate begins.

    rate_ucr: of one response, one byte, or one byte for a month of 730 hours. A rate that has
    begun is never changed or deleted (trigger).
    """

    kind = models.CharField(max_length=8, choices=UsageKind.choices)
    rate_ucr = models.BigIntegerField()
    begins_at = models.DateTimeField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["kind", "begins_at"], name="rate_once"),
            models.CheckConstraint(condition=models.Q(rate_ucr__gte=0), name="rate_not_negative"),
        ]
        ordering = ["kind", "begins_at"]

    def __str__(self) -> str:
        """Return a label."""
        return f"{self.kind} {self.rate_ucr} µcr from {self.begins_at:%Y-%m-%d %H:%M}"
