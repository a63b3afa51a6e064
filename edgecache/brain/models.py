"""The brain's schema. Its code reads and writes these tables with SQL (``brain.database``).

Ids of organizations and environments are plain numbers: the brain may have a database of its own.
Nothing outside ``edgecache.brain`` reads these tables.
"""

from django.db import models
from django.db.models.functions import Now


class Origin(models.Model):
    """Where a bucket's objects come from, when not from the built-in origin.

    config: what the kind needs (endpoint, bucket, region, account), without secrets.
    secret: credentials as encrypted JSON; empty means anonymous, never the machine's own identity.
    """

    class Kind(models.TextChoices):
        """Which driver speaks to it."""

        S3 = "s3"
        GCS = "gcs"
        AZURE = "azure"
        HTTP = "http"

    organization_id = models.BigIntegerField()
    environment_pk = models.BigIntegerField()
    name = models.CharField(max_length=63)
    kind = models.CharField(max_length=8, choices=Kind.choices)
    config = models.JSONField(default=dict)
    secret = models.TextField(blank=True, db_default="")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["organization_id", "environment_pk", "name"], name="origin_name_once"
            )
        ]

    def __str__(self) -> str:
        """Name it."""
        return self.name


class Bucket(models.Model):
    """A name for objects, unique within its environment.

    public_name: opaque and unique over all; what ``/p/{public_name}/{key}`` says.
    origin: None means the built-in one. is_public: anyone may read, and strangers' nodes may hold.
    sequence: rises with every purge. A fill that began before one has to look (``PurgeRecord``).
    """

    organization_id = models.BigIntegerField()
    environment_pk = models.BigIntegerField()
    name = models.CharField(max_length=63)
    public_name = models.CharField(max_length=32, unique=True)
    origin = models.ForeignKey(Origin, null=True, on_delete=models.PROTECT)
    origin_prefix = models.CharField(max_length=1024, blank=True, db_default="")
    is_public = models.BooleanField(db_default=False)
    allows_redirect = models.BooleanField(db_default=False)
    verifies_reads = models.BooleanField(db_default=False)
    sequence = models.BigIntegerField(db_default=0)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["organization_id", "environment_pk", "name"], name="bucket_name_once"
            )
        ]

    def __str__(self) -> str:
        """Name it."""
        return self.name


class AccessKey(models.Model):
    """A pair for SigV4, of one environment. secret: encrypted, since signatures need it in clear.

    access: ``read`` or ``write`` (which reads, too).
    """

    id = models.CharField(primary_key=True, max_length=32)
    organization_id = models.BigIntegerField()
    environment_pk = models.BigIntegerField()
    secret = models.TextField()
    label = models.CharField(max_length=100, blank=True, db_default="")
    access = models.CharField(max_length=5, db_default="write")
    created_at = models.DateTimeField(db_default=Now())
    last_used_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["organization_id", "environment_pk"])]

    def __str__(self) -> str:
        """Name it."""
        return self.id


class Blob(models.Model):
    """Bytes that the cache or the built-in origin knows by their hash.

    chunks: SHA-256 of every MiB, 32 bytes each. crc32: unsigned. released_at: when the last object
    that is known to have named it went; the collector then looks whether another one does.
    hot_until: it has more copies than others until then.
    """

    sha256 = models.BinaryField(primary_key=True, max_length=32)
    size = models.BigIntegerField()
    md5 = models.BinaryField(max_length=16)
    crc32 = models.BigIntegerField()
    chunks = models.BinaryField()
    released_at = models.DateTimeField(null=True)
    hot_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [
            models.Index(
                fields=["released_at"],
                condition=models.Q(released_at__isnull=False),
                name="blob_released",
            )
        ]

    def __str__(self) -> str:
        """Name it."""
        return bytes(self.sha256).hex()


class ObjectFields(models.Model):
    """What a stored and a cached object have in common.

    etag: without quotes. headers: Cache-Control and the like, lower-case names. metadata: the
    caller's own (``x-amz-meta-``). checksums: ``{"sha256": base64, …, "type": "FULL_OBJECT"}``.
    parts: sizes of the parts of a multipart upload.
    """

    bucket = models.ForeignKey(Bucket, on_delete=models.CASCADE)
    key = models.TextField(db_collation="C")
    blob = models.ForeignKey(Blob, on_delete=models.PROTECT)
    etag = models.CharField(max_length=200)
    content_type = models.CharField(max_length=255)
    headers = models.JSONField(default=dict)
    metadata = models.JSONField(default=dict)
    checksums = models.JSONField(default=dict)
    parts = models.JSONField(default=list)
    last_modified = models.DateTimeField()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        """Name it."""
        return self.key


class StoredObject(ObjectFields):
    """An object of the built-in origin: the truth, which a purge leaves alone."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["bucket", "key"], name="stored_object_once")]


class CachedObject(ObjectFields):
    """The directory: what the cache may answer with, until it is purged or goes stale.

    generation: from one sequence for all; a new one for each version of a key.
    http: the origin's answer as RFC 9111 needs it (pull buckets), else empty.
    variant: the secondary key that Vary asks for, else empty.
    """

    variant = models.TextField(db_collation="C", blank=True, db_default="")
    generation = models.BigIntegerField()
    http = models.JSONField(default=dict)
    cached_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["bucket", "key", "variant"], name="cached_object_once")
        ]


class PurgeRecord(models.Model):
    """What a purge or a deletion hit, for the fills that were under way; kept for a day.

    generation: rows of the directory below it are dead. is_prefix: ``pattern`` is a prefix, else
    one key. is_done: such rows are gone; until then whoever reads the directory has to look here.
    brain_id: who takes them out; when it has died, another one does.
    """

    bucket = models.ForeignKey(Bucket, on_delete=models.CASCADE)
    generation = models.BigIntegerField()
    pattern = models.TextField(db_collation="C")
    is_prefix = models.BooleanField()
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

    def __str__(self) -> str:
        """Name it."""
        return self.pattern


class PendingWrite(models.Model):
    """A write to an external origin that is under way: until it is over nobody caches the key.

    A brain that died in between leaves it behind; another one then forgets the key. write_id: of the
    call, which may write many keys.
    """

    write_id = models.UUIDField(db_index=True)
    bucket = models.ForeignKey(Bucket, on_delete=models.CASCADE)
    key = models.TextField(db_collation="C")
    brain_id = models.UUIDField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [
            models.Index(fields=["bucket", "key"]),
            models.Index(fields=["brain_id"]),
        ]

    def __str__(self) -> str:
        """Name it."""
        return self.key


class FillLease(models.Model):
    """The brain that fetches a key now, so that the others wait for it."""

    bucket = models.ForeignKey(Bucket, on_delete=models.CASCADE)
    key = models.TextField(db_collation="C")
    variant = models.TextField(db_collation="C", blank=True, db_default="")
    brain_id = models.UUIDField()
    expires_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["bucket", "key", "variant"], name="fill_once")
        ]

    def __str__(self) -> str:
        """Name it."""
        return self.key


class Upload(models.Model):
    """A multipart upload that is not complete."""

    id = models.CharField(primary_key=True, max_length=64)
    bucket = models.ForeignKey(Bucket, on_delete=models.CASCADE)
    key = models.TextField(db_collation="C")
    content_type = models.CharField(max_length=255)
    headers = models.JSONField(default=dict)
    metadata = models.JSONField(default=dict)
    checksum_algorithm = models.CharField(max_length=12, blank=True, db_default="")
    checksum_type = models.CharField(max_length=12, blank=True, db_default="")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [models.Index(fields=["bucket", "key"])]

    def __str__(self) -> str:
        """Name it."""
        return self.id


class UploadPart(models.Model):
    """A part: its bytes are a file of the brain's, named ``file``."""

    upload = models.ForeignKey(Upload, on_delete=models.CASCADE)
    number = models.IntegerField()
    file = models.CharField(max_length=64)
    size = models.BigIntegerField()
    etag = models.CharField(max_length=64)
    checksums = models.JSONField(default=dict)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["upload", "number"], name="part_once")]

    def __str__(self) -> str:
        """Name it."""
        return str(self.number)


class Node(models.Model):
    """A worker. organization_id: who runs it; None is the platform.

    secret_hash: SHA-256 of its credential. incarnation: of its last start, so that an old process's
    heartbeat is known. status is what was decided; health (online, suspect, offline) is reckoned
    from last_seen_at. proved_at: when its endpoint last answered a nonce with its secret's proof.
    removed_at: when its removal was asked for; it drains until its status says so, too.
    inventory_of: the incarnation whose full inventory has come whole, begun at inventory_at.
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
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["endpoint"],
                condition=models.Q(removed_at=None),
                name="node_endpoint_once",
            )
        ]

    def __str__(self) -> str:
        """Name it."""
        return self.endpoint


class Location(models.Model):
    """A node holds a blob."""

    blob = models.ForeignKey(Blob, on_delete=models.CASCADE)
    node = models.ForeignKey(Node, on_delete=models.CASCADE)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["blob", "node"], name="location_once")]

    def __str__(self) -> str:
        """Name it."""
        return f"{self.blob_id!r} on {self.node_id}"


class NodeJob(models.Model):
    """Work for a node, which asks for it: delete a blob, or fetch one from another node.

    attempts: how often it failed; after each it waits longer.
    """

    node = models.ForeignKey(Node, on_delete=models.CASCADE)
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

    def __str__(self) -> str:
        """Name it."""
        return self.kind


class BrainInstance(models.Model):
    """A running brain. One whose lease is over no longer answers from memory."""

    id = models.UUIDField(primary_key=True)
    started_at = models.DateTimeField(db_default=Now())
    lease_until = models.DateTimeField()

    def __str__(self) -> str:
        """Name it."""
        return str(self.id)


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
        """Name it."""
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
        """Name it."""
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
        """Name it."""
        return f"{self.node_id} {self.minute:%H:%M}"
