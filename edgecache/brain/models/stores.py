"""The managed store: which stores there are, and what they hold."""

from django.db import models
from django.db.models.functions import Now

from common.models import ModelWithoutLabel
from edgecache.brain.models.objects import Blob


class Store(ModelWithoutLabel):
    """A store of the built-in origin's bytes. Its credentials are settings of the brains.

    name: its URL, with the endpoint where there is one; ``file://`` is in the data directory. tag:
    names in it begin so: two platforms that share a bucket do not delete each other's. is_active:
    new writes go there.
    """

    id = models.AutoField(primary_key=True)
    name = models.CharField(max_length=1000, unique=True)
    tag = models.CharField(max_length=32)
    is_active = models.BooleanField(db_default=False)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["is_active"], condition=models.Q(is_active=True), name="store_active_once"
            )
        ]


class StoredBlob(ModelWithoutLabel):
    """Where a store has a blob of an environment's stored objects; small ones are ``SmallBody``.

    Environments do not share bytes: what one can observe of the store says nothing about another.
    """

    organization_id = models.BigIntegerField()
    environment_pk = models.BigIntegerField()
    blob = models.ForeignKey(Blob, on_delete=models.PROTECT, db_index=False)
    store = models.ForeignKey(Store, on_delete=models.PROTECT, db_index=False)
    name = models.CharField(max_length=200)
    stored_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["blob", "organization_id", "environment_pk"], name="stored_blob_once"
            ),
            models.UniqueConstraint(fields=["store", "name"], name="stored_blob_name_once"),
        ]


class DiscardedBytes(ModelWithoutLabel):
    """Bytes in a store that nothing names any more, to be deleted from due_at on."""

    store = models.ForeignKey(Store, on_delete=models.PROTECT, db_index=False)
    name = models.CharField(max_length=200)
    due_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [models.Index(fields=["due_at"], name="discarded_bytes_due")]
        constraints = [
            models.UniqueConstraint(fields=["store", "name"], name="discarded_bytes_once")
        ]
