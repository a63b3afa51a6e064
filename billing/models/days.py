"""Sums of the usage lines by day, which triggers keep with each charge and adjustment.

They are derived: ``verifyledger`` compares them with the lines. Days are UTC days.
"""

from django.db import models

from common.models import ModelWithoutLabel


class ConsumerDay(ModelWithoutLabel):
    """What one bucket used in one day, and what it cost by now."""

    organization_id = models.BigIntegerField()
    day = models.DateField()
    environment_pk = models.BigIntegerField()
    bucket_name = models.CharField(max_length=63, blank=True)
    hits = models.DecimalField(max_digits=40, decimal_places=0)
    misses = models.DecimalField(max_digits=40, decimal_places=0)
    egress_bytes = models.DecimalField(max_digits=40, decimal_places=0)
    storage_byte_hours = models.DecimalField(max_digits=40, decimal_places=0)
    charged_ucr = models.DecimalField(max_digits=40, decimal_places=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["organization_id", "day", "environment_pk", "bucket_name"],
                name="consumer_day_once",
            )
        ]


class OperatorDay(ModelWithoutLabel):
    """What one node served in one day, and what that earned by now.

    lines: of the statement, those with a share. paid_ucr, share_ucr: their sums.
    """

    operator_id = models.BigIntegerField()
    day = models.DateField()
    node_id = models.UUIDField(null=True)
    hits = models.DecimalField(max_digits=40, decimal_places=0)
    egress_bytes = models.DecimalField(max_digits=40, decimal_places=0)
    lines = models.BigIntegerField()
    paid_ucr = models.DecimalField(max_digits=40, decimal_places=0)
    share_ucr = models.DecimalField(max_digits=40, decimal_places=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["operator_id", "day", "node_id"],
                name="operator_day_once",
                nulls_distinct=False,
            )
        ]


class SqlDay(ModelWithoutLabel):
    """What one environment used of SQL in one day, and what it cost by now."""

    organization_id = models.BigIntegerField()
    day = models.DateField()
    environment_pk = models.BigIntegerField()
    statements = models.DecimalField(max_digits=40, decimal_places=0)
    milliseconds = models.DecimalField(max_digits=40, decimal_places=0)
    egress_bytes = models.DecimalField(max_digits=40, decimal_places=0)
    storage_byte_hours = models.DecimalField(max_digits=40, decimal_places=0)
    charged_ucr = models.DecimalField(max_digits=40, decimal_places=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["organization_id", "day", "environment_pk"], name="sql_day_once"
            )
        ]
