"""Workers, what they hold and have to do, and the brains that run."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from common.models import ModelWithoutLabel
from edgecache.brain.models.objects import Blob


class Node(ModelWithoutLabel):
    """A worker.

    organization_id: the node operator; None is the platform.
    created_by, creator_id: the member who registered it, by the name at that time and the id.
    secret_hash: SHA-256 of its credential.
    incarnation: identifies its last start, so that an old process's heartbeat is recognized.
    status: what was decided at status_at. Health (online, suspect, offline) follows from
    last_seen_at.
    proved_at: when its endpoint last answered a nonce with the proof of its secret.
    removed_at: when its removal was requested; it drains until its status is ``removed``.
    inventory_of: the incarnation whose full inventory is complete, begun at inventory_at.
    """

    class Status(models.TextChoices):
        """What was decided about it."""

        PENDING = "pending"
        ACTIVE = "active"
        DRAINING = "draining"
        QUARANTINED = "quarantined"
        REMOVED = "removed"

    id = models.UUIDField(primary_key=True)
    organization_id = models.BigIntegerField(null=True)
    endpoint = models.CharField(max_length=255)
    region = models.CharField(max_length=63)
    capacity_bytes = models.BigIntegerField()
    status = models.CharField(max_length=12, choices=Status.choices)
    status_reason = models.CharField(max_length=255, blank=True, db_default="")
    status_at = models.DateTimeField(db_default=Now())
    secret_hash = models.BinaryField(max_length=32)
    incarnation = models.CharField(max_length=36, blank=True, db_default="")
    sequence = models.BigIntegerField(db_default=0)
    used_bytes = models.BigIntegerField(db_default=0)
    object_count = models.BigIntegerField(db_default=0)
    evictions = models.BigIntegerField(db_default=0)
    load = models.FloatField(db_default=0.0)
    last_seen_at = models.DateTimeField(null=True)
    inventory_of = models.CharField(max_length=36, blank=True, db_default="")
    inventory_at = models.DateTimeField(null=True)
    proved_at = models.DateTimeField(null=True)
    removed_at = models.DateTimeField(null=True)
    created_by = models.CharField(max_length=254, blank=True, db_default="")
    creator_id = models.UUIDField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["endpoint"],
                condition=models.Q(removed_at=None),
                name="node_endpoint_once",
            )
        ]


class Location(ModelWithoutLabel):
    """A node holds a blob."""

    blob = models.ForeignKey(Blob, on_delete=models.CASCADE, db_index=False)
    node = models.ForeignKey(Node, on_delete=models.CASCADE)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["blob", "node"], name="location_once")]


class NodeJob(ModelWithoutLabel):
    """Work for a node, which polls for it: delete or verify a blob, or fetch one from another node.

    attempts: how often it was given to the node; after each failure the delay is longer.
    """

    node = models.ForeignKey(Node, on_delete=models.CASCADE, db_index=False)
    kind = models.CharField(max_length=12)
    sha256 = models.BinaryField(max_length=32)
    attempts = models.IntegerField(db_default=0)
    not_before = models.DateTimeField(db_default=Now())
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [models.Index(fields=["sha256"], name="node_job_of_blob")]
        constraints = [
            models.UniqueConstraint(fields=["node", "kind", "sha256"], name="node_job_once")
        ]


class BrainInstance(ModelWithoutLabel):
    """A running brain; it may answer from memory until its lease ends.

    stores: those that it can reach.
    store_id: the store of all its writes, earlier ones included.
    """

    id = models.UUIDField(primary_key=True)
    started_at = models.DateTimeField(db_default=Now())
    lease_until = models.DateTimeField()
    stores = ArrayField(models.IntegerField(), default=list, db_default=[])
    store_id = models.IntegerField(null=True)


class OperatorNetwork(ModelWithoutLabel):
    """A network (/24, /56) that a node operator uses; reads from there earn it nothing.

    source: where it was seen, ``node`` (the brain) or ``session`` (the platform).
    """

    operator_id = models.BigIntegerField()
    source = models.CharField(max_length=8)
    prefix = models.CharField(max_length=43)
    seen_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["operator_id", "source", "prefix"], name="operator_network_once"
            )
        ]


class OrganizationService(ModelWithoutLabel):
    """The platform's decision whether other operators' nodes serve an organization's objects.

    version: of the decision; a lower one that arrives later is ignored.
    """

    organization_id = models.BigIntegerField(primary_key=True)
    is_stopped = models.BooleanField()
    version = models.BigIntegerField()
