"""What was served: for metering and for the metrics."""

from django.db import models
from django.db.models.functions import Now

from edgecache.brain.models.nodes import Node


class UsageLine(models.Model):
    """What one brain forwarded for one bucket through one node in one minute. Append-only.

    line_id: made by the brain before it is written, so that writing it twice changes nothing.
    """

    line_id = models.UUIDField(unique=True)
    organization_id = models.BigIntegerField()
    environment_pk = models.BigIntegerField()
    bucket_id = models.BigIntegerField()
    node_id = models.UUIDField(null=True)
    minute = models.DateTimeField()
    hits = models.BigIntegerField(db_default=0)
    misses = models.BigIntegerField(db_default=0)
    bytes_served = models.BigIntegerField(db_default=0)
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        """Return a label."""
        return str(self.line_id)


class Receipt(models.Model):
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

    def __str__(self) -> str:
        """Return a label."""
        return str(self.ticket_id)


class Measurement(models.Model):
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

    def __str__(self) -> str:
        """Return a label."""
        return f"{self.node_id} {self.minute:%H:%M}"
