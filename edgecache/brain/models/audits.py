"""Audits of delivery: what the platform read from operators' nodes, as a client would."""

from django.db import models
from django.db.models.functions import Now

from common.models import ModelWithoutLabel
from edgecache.brain.models.nodes import Node


class Look(ModelWithoutLabel):
    """One look. It is written before the node is asked: its receipt is never counted.

    id: the ticket's. path, outcome: see ``brain.audits.node_checks``; no outcome while it runs.
    vantage: the address that it came from, never shown. is_recheck: of a node in quarantine. size:
    bytes asked for.
    """

    id = models.UUIDField(primary_key=True)
    node = models.ForeignKey(Node, on_delete=models.CASCADE, db_index=False)
    sha256 = models.BinaryField(max_length=32)
    path = models.CharField(max_length=9)
    vantage = models.CharField(max_length=45, blank=True, db_default="")
    is_recheck = models.BooleanField(db_default=False)
    size = models.BigIntegerField()
    outcome = models.CharField(max_length=10, blank=True, db_default="")
    began_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [models.Index(fields=["node", "began_at"], name="look_by_node_and_time")]


class AuditPlan(ModelWithoutLabel):
    """When a node is checked next. recheck_of: the quarantine (its status_at) checked last."""

    node = models.OneToOneField(Node, on_delete=models.CASCADE, primary_key=True)
    next_at = models.DateTimeField()
    recheck_of = models.DateTimeField(null=True)


class QuarantineEvent(ModelWithoutLabel):
    """An operator's node was quarantined; kept when the node is removed. Append-only."""

    id = models.BigAutoField(primary_key=True)
    node_id = models.UUIDField()
    organization_id = models.BigIntegerField()
    reason = models.CharField(max_length=255)
    began_at = models.DateTimeField()
