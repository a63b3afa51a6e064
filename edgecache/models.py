"""What the platform knows of the cache: its metrics' history, and its nodes' latest states."""

from typing import Any

from django.db import models

from common.models import ModelWithoutLabel


class CacheSample(models.Model):
    """The cluster-wide metrics at one moment, with the API's names. Counters rise.

    moment: rounded down to the interval, so that two pollers make one sample.
    is_hourly: the last sample of its hour, kept for a year; the others are kept for two days.
    """

    moment = models.DateTimeField()
    is_hourly = models.BooleanField(db_default=False)
    total_hits = models.BigIntegerField()
    total_misses = models.BigIntegerField()
    hit_ratio = models.FloatField()
    bytes_served = models.BigIntegerField()
    bytes_stored = models.BigIntegerField()
    bytes_capacity = models.BigIntegerField()
    object_count = models.BigIntegerField()
    evictions = models.BigIntegerField()
    active_nodes = models.IntegerField()
    avg_latency_ms = models.FloatField()
    p95_latency_ms = models.FloatField()
    p99_latency_ms = models.FloatField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["is_hourly", "moment"], name="cache_sample_once")
        ]

    def __str__(self) -> str:
        return f"{self.moment:%Y-%m-%d %H:%M:%S}"

    def as_metrics(self) -> dict[str, Any]:
        """Return the sample with the fields of the published interface."""
        shown = {
            field.name: getattr(self, field.name)
            for field in self._meta.concrete_fields
            if field.name not in {"id", "moment", "is_hourly"}
        }
        return shown | {"collected_at": self.moment}


class NodeState(ModelWithoutLabel):
    """The state of a node at its last check, to detect changes.

    node_id: the brain's id of the node, since the brain may have its own database.
    status, health: as in the API.
    """

    node_id = models.UUIDField(primary_key=True)
    organization_id = models.BigIntegerField()
    status = models.CharField(max_length=20)
    health = models.CharField(max_length=20)
    changed_at = models.DateTimeField()
