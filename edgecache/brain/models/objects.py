"""Objects: stored, cached, and being written or purged."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models.functions import Now

from common.models import ModelWithoutLabel
from edgecache.brain.models.buckets import Bucket


class Blob(ModelWithoutLabel):
    """Bytes that the cache or the built-in origin knows by their hash.

    chunks: digests of its blocks (``blocks.Blocks``). crc32: unsigned. hot_until: it has more
    copies than others until then.
    """

    sha256 = models.BinaryField(primary_key=True, max_length=32)
    size = models.BigIntegerField()
    md5 = models.BinaryField(max_length=16)
    crc32 = models.BigIntegerField()
    chunks = models.BinaryField()
    hot_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())


class SmallBody(ModelWithoutLabel):
    """The bytes of a blob of the built-in origin's objects, if they are few.

    A table of its own, so that queries of blobs do not read bodies.
    """

    blob = models.OneToOneField(Blob, primary_key=True, on_delete=models.PROTECT)
    body = models.BinaryField()


class Release(ModelWithoutLabel):
    """Blobs that may be unreferenced since a cached object was deleted, for garbage collection.

    blobs: some tens of SHA-256s. A purge releases many together: a row for each would take longer
    than the rest of the purge.
    """

    blobs = ArrayField(models.BinaryField(max_length=32))


class ObjectFields(ModelWithoutLabel):
    """What a stored and a cached object have in common.

    etag: without quotes. headers: Cache-Control and the like, and the tags (``x-amz-tagging``, as
    that header has them); lower-case names. metadata: the caller's
    own (``x-amz-meta-``). checksums: ``{"sha256": base64, …, "type": "FULL_OBJECT"}``,
    with those of the parts in "parts" and the upload in "upload" (``aws.checksums``).
    parts: sizes of the parts of a multipart upload.
    """

    bucket = models.ForeignKey(Bucket, on_delete=models.CASCADE, db_index=False)
    key = models.TextField(db_collation="C")
    etag = models.CharField(max_length=200)
    content_type = models.CharField(max_length=255)
    headers = models.JSONField(default=dict)
    metadata = models.JSONField(default=dict)
    checksums = models.JSONField(default=dict)
    parts = models.JSONField(default=list)
    last_modified = models.DateTimeField()

    class Meta:
        abstract = True


class StoredObject(ObjectFields):
    """An object of the built-in origin: the truth, which a purge leaves alone.

    Of a bucket with versions it is the current one, with its id in ``headers``
    (``x-amz-version-id``; none for the null version). position: orders the versions of a key; 0 for
    what was written without versioning, which is the oldest.
    """

    blob = models.ForeignKey(Blob, on_delete=models.PROTECT)
    position = models.BigIntegerField(db_default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["bucket", "key"], name="stored_object_once")]


class NoncurrentVersion(ObjectFields):
    """A version of an object that is not current, or a delete marker.

    A key whose newest version is a delete marker has no ``StoredObject``; otherwise that is the
    newest one. version_id: empty for the null version. blob: None for a delete marker. position: as
    that of ``StoredObject``, which it keeps. noncurrent_since: when the row was made; that is when
    a marker became the newest version, not when the next one came.
    """

    blob = models.ForeignKey(Blob, null=True, on_delete=models.PROTECT)
    version_id = models.TextField(db_collation="C", blank=True, db_default="")
    position = models.BigIntegerField()
    noncurrent_since = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["bucket", "key", "version_id"], name="noncurrent_version_once"
            ),
            # In the order of listings.
            models.UniqueConstraint(
                "bucket", "key", models.F("position").desc(), name="noncurrent_version_position"
            ),
        ]


class CachedObject(ObjectFields):
    """The directory: what the cache may answer with, until it is purged or stale.

    generation: from one sequence for all; each version of a key has a new one.
    http: the origin's response as RFC 9111 needs it (buckets with an HTTP origin), or empty.
    variant: the secondary key that Vary requires, or empty.
    tags: by which it is purged, as ``cache_tags`` stores them; None without any.
    """

    blob = models.ForeignKey(Blob, on_delete=models.PROTECT)
    variant = models.TextField(db_collation="C", blank=True, db_default="")
    generation = models.BigIntegerField()
    http = models.JSONField(default=dict)
    tags = ArrayField(models.TextField(), null=True)
    cached_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["bucket", "key", "variant"], name="cached_object_once")
        ]
        indexes = [
            models.Index(
                fields=["bucket", "cached_at"],
                condition=~models.Q(http={}),
                name="cached_response_age",
            ),
            GinIndex(
                fields=["tags"], condition=models.Q(tags__isnull=False), name="cached_object_tags"
            ),
        ]


class PurgeRecord(ModelWithoutLabel):
    """A purge or deletion, for the fetches that were running; kept for a day.

    generation: older rows of the directory are invalid.
    is_prefix: ``pattern`` is a prefix, not a key.
    tags: of what the prefix has, only what has one of these; None for all.
    is_done: these rows are deleted; until then readers of the directory also read this table.
    brain_id: the brain that deletes them; after a crash another one does.
    """

    bucket = models.ForeignKey(Bucket, on_delete=models.CASCADE)
    generation = models.BigIntegerField()
    pattern = models.TextField(db_collation="C")
    is_prefix = models.BooleanField()
    tags = ArrayField(models.TextField(), null=True)
    is_done = models.BooleanField(db_default=True)
    brain_id = models.UUIDField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [
            models.Index(
                fields=["bucket", "pattern", "generation"],
                condition=models.Q(is_prefix=False),
                name="purge_record_key",
            ),
            models.Index(
                fields=["bucket", "generation"],
                condition=models.Q(is_prefix=True),
                name="purge_record_prefix",
            ),
            models.Index(
                fields=["bucket"], condition=models.Q(is_done=False), name="purge_record_undone"
            ),
            models.Index(fields=["created_at"]),
        ]


class PendingWrite(ModelWithoutLabel):
    """A running write to an external origin: until it ends the key is not cached.

    After a crash of its brain, another brain forgets the key. write_id: the call's, which may write
    many keys.
    """

    write_id = models.UUIDField(db_index=True)
    bucket = models.ForeignKey(Bucket, on_delete=models.CASCADE, db_index=False)
    key = models.TextField(db_collation="C")
    brain_id = models.UUIDField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [
            models.Index(fields=["bucket", "key"]),
            models.Index(fields=["brain_id"]),
        ]


class FillLease(ModelWithoutLabel):
    """The brain that fetches a key now, so that the others wait for it."""

    bucket = models.ForeignKey(Bucket, on_delete=models.CASCADE, db_index=False)
    key = models.TextField(db_collation="C")
    variant = models.TextField(db_collation="C", blank=True, db_default="")
    brain_id = models.UUIDField()
    expires_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["bucket", "key", "variant"], name="fill_once")
        ]


class Upload(ModelWithoutLabel):
    """A multipart upload that is not complete."""

    id = models.CharField(primary_key=True, max_length=64)
    bucket = models.ForeignKey(Bucket, on_delete=models.CASCADE, db_index=False)
    key = models.TextField(db_collation="C")
    content_type = models.CharField(max_length=255)
    headers = models.JSONField(default=dict)
    metadata = models.JSONField(default=dict)
    checksum_algorithm = models.CharField(max_length=12, blank=True, db_default="")
    checksum_type = models.CharField(max_length=12, blank=True, db_default="")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [models.Index(fields=["bucket", "key"])]


class UploadPart(ModelWithoutLabel):
    """A part. file: the name of its bytes in the store."""

    upload = models.ForeignKey(Upload, on_delete=models.CASCADE, db_index=False)
    number = models.IntegerField()
    store = models.ForeignKey("brain.Store", on_delete=models.PROTECT)
    file = models.CharField(max_length=200)
    size = models.BigIntegerField()
    etag = models.CharField(max_length=64)
    checksums = models.JSONField(default=dict)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["upload", "number"], name="part_once")]
