"""What a unit of usage costs."""

from django.db import models
from django.db.models.functions import Now


class UsageKind(models.TextChoices):
    """What is metered.

    Units of the cache: responses, responses, bytes, byte-hours; of SQL: statements, milliseconds,
    bytes, byte-hours.
    """

    HIT = "hit"
    MISS = "miss"
    EGRESS = "egress"
    STORAGE = "storage"
    SQL_STATEMENT = "sql_statement"
    SQL_TIME = "sql_time"
    SQL_EGRESS = "sql_egress"
    SQL_STORAGE = "sql_storage"


class Rate(models.Model):
    """The price of a kind of usage from a full UTC hour on, until a later rate begins.

    rate_ucr: of one unit, of storage for a month of 730 hours. A rate that has
    begun is never changed or deleted (trigger).
    """

    kind = models.CharField(max_length=16, choices=UsageKind.choices)
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
        return f"{self.kind} {self.rate_ucr} µcr from {self.begins_at:%Y-%m-%d %H:%M}"
