"""What was served: for metering and for the metrics."""

from django.db import models
from django.db.models.functions import Now

from common.models import ModelWithoutLabel
from edgecache.brain.models.nodes import Node


class UsageBatch(ModelWithoutLabel):
    """A batch of counts that was written, so that it is not counted again after a lost commit."""

    id = models.UUIDField(primary_key=True)
    created_at = models.DateTimeField(db_default=Now())


class UsageCounter(ModelWithoutLabel):
    """What one bucket used through one node in one hour and is not in a usage line yet."""

    organization_id = models.BigIntegerField()
    environment_pk = models.BigIntegerField()
    bucket_id = models.BigIntegerField()
    node_id = models.UUIDField(null=True)
    is_creditable = models.BooleanField()
    hour = models.DateTimeField()
    hits = models.BigIntegerField()
    misses = models.BigIntegerField()
    bytes_served = models.BigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["bucket_id", "node_id", "is_creditable", "hour"],
                name="usage_counter_once",
                nulls_distinct=False,
            )
        ]


class OriginFailure(ModelWithoutLabel):
    """Why responses of a bucket failed lately: one row for each cause (``BrainError.cause``).

    count: since there was a week without it.
    """

    bucket_id = models.BigIntegerField()
    cause = models.CharField(max_length=64)
    count = models.BigIntegerField()
    last_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["bucket_id", "cause"], name="origin_failure_once")
        ]


class UsageLine(ModelWithoutLabel):
    """Usage as it is billed: of one bucket through one node, in one hour. Append-only.

    A line has either the counts or storage_byte_hours.
    operator_id: the organization that runs the node.
    is_creditable: False for traffic that earns the operator nothing.
    """

    line_id = models.UUIDField(unique=True)
    organization_id = models.BigIntegerField()
    environment_pk = models.BigIntegerField()
    bucket_id = models.BigIntegerField()
    bucket_name = models.CharField(max_length=63, db_default="")
    node_id = models.UUIDField(null=True)
    operator_id = models.BigIntegerField(null=True)
    is_creditable = models.BooleanField(db_default=True)
    used_at = models.DateTimeField()
    hits = models.BigIntegerField(db_default=0)
    misses = models.BigIntegerField(db_default=0)
    bytes_served = models.BigIntegerField(db_default=0)
    storage_byte_hours = models.DecimalField(max_digits=40, decimal_places=0, db_default=0)
    created_at = models.DateTimeField(db_default=Now())


class StorageHour(ModelWithoutLabel):
    """An hour whose storage was added up, so that only one brain does it."""

    hour = models.DateTimeField(primary_key=True)
    created_at = models.DateTimeField(db_default=Now())


class Receipt(ModelWithoutLabel):
    """A ticket that a worker redeemed in direct mode: a ticket counts once."""

    ticket_id = models.UUIDField(primary_key=True)
    node = models.ForeignKey(Node, on_delete=models.CASCADE)
    organization_id = models.BigIntegerField()
    environment_pk = models.BigIntegerField()
    bucket_id = models.BigIntegerField()
    sha256 = models.BinaryField(max_length=32)
    bytes_served = models.BigIntegerField()
    served_at = models.DateTimeField()
    created_at = models.DateTimeField(db_default=Now())


class Measurement(ModelWithoutLabel):
    """Counters and a latency histogram of one brain and node (None: all) for one minute."""

    brain_id = models.UUIDField()
    node_id = models.UUIDField(null=True)
    minute = models.DateTimeField()
    hits = models.BigIntegerField(db_default=0)
    misses = models.BigIntegerField(db_default=0)
    bytes_served = models.BigIntegerField(db_default=0)
    latencies = models.JSONField(default=dict)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["brain_id", "node_id", "minute"],
                name="measurement_once",
                nulls_distinct=False,
            )
        ]
