"""Whose objects there are: origins, buckets, and the keys that open them."""

from typing import Any, Final, get_args

from django.db import models
from django.db.models.functions import Now

from common.models import ModelWithoutLabel
from edgecache.protocol.resources import KEY_LABEL_CHARS, BucketOptions, OriginKind, OriginOptions

KINDS: Final = get_args(OriginKind)


class Origin(ModelWithoutLabel):
    """Where a bucket's objects come from, when not from the built-in origin.

    config: what the kind needs (endpoint, bucket, region), without secrets.
    secret: credentials as encrypted JSON; empty means anonymous, never the machine's own identity.
    created_by, creator_id: the member's name at that time and id; no id for an API key.
    The columns of ``OriginOptions`` follow.
    """

    organization_id = models.BigIntegerField()
    environment_pk = models.BigIntegerField()
    name = models.CharField(max_length=63)
    kind = models.CharField(max_length=8, choices=[(kind, kind.title()) for kind in KINDS])
    config = models.JSONField(default=dict)
    secret = models.TextField(blank=True, db_default="")
    created_by = models.CharField(max_length=254, blank=True, db_default="")
    creator_id = models.UUIDField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["organization_id", "environment_pk", "name"], name="origin_name_once"
            )
        ]


class Bucket(ModelWithoutLabel):
    """A name for objects, unique within its environment.

    public_name: random and globally unique; used in ``/p/{public_name}/{key}``.
    origin: None for the built-in one.
    tags: the bucket's own, by key.
    cors: its rules (``cors.rules``), empty for none.
    lifecycle: its rules (``upkeep.lifecycle_rules``), empty for none.
    lifecycle_done: the last day on which they were applied, of UTC; None since they changed.
    sequence: rises with every purge; a fetch that began before must read ``PurgeRecord``.
    links_generation: rises when the bucket's signed links are revoked.
    The columns of ``BucketOptions`` follow; those of lists are texts with commas.
    """

    organization_id = models.BigIntegerField()
    environment_pk = models.BigIntegerField()
    name = models.CharField(max_length=63)
    public_name = models.CharField(max_length=32, unique=True)
    origin = models.ForeignKey(Origin, null=True, on_delete=models.PROTECT)
    origin_prefix = models.CharField(max_length=1024, blank=True, db_default="")
    tags = models.JSONField(default=dict, db_default={})
    cors = models.JSONField(default=list, db_default=[])
    lifecycle = models.JSONField(default=list, db_default=[])
    lifecycle_done = models.DateField(null=True)
    sequence = models.BigIntegerField(db_default=0)
    links_generation = models.BigIntegerField(db_default=0)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["organization_id", "environment_pk", "name"], name="bucket_name_once"
            )
        ]
        # For preflights, which tell a bucket's name only.
        indexes = [
            models.Index(fields=["name"], condition=~models.Q(cors=[]), name="bucket_name_cors")
        ]


def _column(default: Any) -> "models.Field[Any, Any]":
    """Return the column of an option of a bucket or an origin."""
    match default:
        case bool():
            return models.BooleanField(db_default=default)
        case int():
            return models.BigIntegerField(db_default=default)
        case tuple():
            return models.TextField(blank=True, db_default=",".join(default))
    return models.TextField(blank=True, db_default=default)


for _model, _options in ((Bucket, BucketOptions), (Origin, OriginOptions)):
    for _name, _default in zip(
        _options.__struct_fields__, _options.__struct_defaults__, strict=True
    ):
        _model.add_to_class(_name, _column(_default))


class Host(ModelWithoutLabel):
    """A host name that serves one bucket over plain HTTP, proven by a DNS record.

    token: the record's value.
    checked_at: when the record was last queried.
    gone_since: when it was first missing; None while it is not known to be missing.
    """

    host = models.CharField(max_length=253, unique=True)
    bucket = models.ForeignKey(Bucket, on_delete=models.CASCADE)
    token = models.CharField(max_length=64)
    proved_at = models.DateTimeField(db_default=Now())
    checked_at = models.DateTimeField(db_default=Now())
    gone_since = models.DateTimeField(null=True)


class AccessKey(ModelWithoutLabel):
    """A pair for SigV4, of one environment. secret: encrypted, since signatures need it in clear.

    access: ``read`` or ``write`` (which reads, too).
    created_by, creator_id: the member's name at that time and id; the key ends when the member may
    not create keys any more.
    """

    id = models.CharField(primary_key=True, max_length=32)
    organization_id = models.BigIntegerField()
    environment_pk = models.BigIntegerField()
    secret = models.TextField()
    label = models.CharField(max_length=KEY_LABEL_CHARS, blank=True, db_default="")
    access = models.CharField(max_length=5, db_default="write")
    created_by = models.CharField(max_length=254, blank=True, db_default="")
    creator_id = models.UUIDField(null=True)
    created_at = models.DateTimeField(db_default=Now())
    last_used_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["organization_id", "environment_pk"])]
