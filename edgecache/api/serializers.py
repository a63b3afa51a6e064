"""JSON of the cache's resources."""

import re
from collections.abc import Mapping
from typing import Any, Final, get_args

from django.conf import settings
from django.utils import timezone
from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from common.api.views import StrictSerializer
from edgecache.api.declared_fields import DeclaredSerializer, OptionsOf
from edgecache.api.failure_causes import MEANINGS, STATUS
from edgecache.protocol.names import (
    BUCKET,
    BUCKET_RULE,
    CAPACITY_LIMIT_BYTES,
    LABEL,
    LABEL_CHARS,
    PASTED_CHARS,
)
from edgecache.protocol.resources import (
    CONFIG_CHARS,
    PREFIX_CHARS,
    SECRET_CHARS,
    AccessKeyOptions,
    BucketOptions,
    OriginKind,
    OriginOptions,
)

NAME: Final = re.compile(rf"\A{LABEL.pattern}\Z")
MAX_KEYS: Final = 1000
MAX_TAGS: Final = 100
EMPTY_VALUES: Final[tuple[tuple[Any, Any], ...]] = (
    (serializers.BooleanField, False),
    ((serializers.IntegerField, serializers.FloatField), 0),
    ((serializers.ListField, serializers.ListSerializer), []),
    (serializers.DictField, {}),
)


def _refuse_nul(value: str) -> None:
    if "\0" in value:
        raise serializers.ValidationError("A key holds no NUL.", code="invalid")


def nothing_of(serializer: Any) -> dict[str, Any]:
    """Return the fields of a serializer with nothing in them."""
    return {name: _nothing(field) for name, field in serializer().fields.items()}


def _nothing(field: serializers.Field[Any, Any, Any, Any]) -> Any:
    """Return null if a field may be null, otherwise the empty value of its type."""
    if field.allow_null:
        return None
    if isinstance(field, serializers.DateTimeField):
        return timezone.now()
    if isinstance(field, serializers.Serializer):
        return nothing_of(type(field))
    return next((empty for kind, empty in EMPTY_VALUES if isinstance(field, kind)), "")


class CacheStatusSerializer(serializers.Serializer[Any]):
    """The cache's status."""

    brain_healthy = serializers.BooleanField()
    total_nodes = serializers.IntegerField()
    online_nodes = serializers.IntegerField()
    total_cache_bytes = serializers.IntegerField()
    used_cache_bytes = serializers.IntegerField()
    hit_ratio = serializers.FloatField()


class CacheMetricsSerializer(serializers.Serializer[Any]):
    """Counters of the whole cache since it was installed."""

    total_hits = serializers.IntegerField()
    total_misses = serializers.IntegerField()
    hit_ratio = serializers.FloatField()
    bytes_served = serializers.IntegerField()
    bytes_stored = serializers.IntegerField()
    bytes_capacity = serializers.IntegerField()
    object_count = serializers.IntegerField()
    evictions = serializers.IntegerField()
    active_nodes = serializers.IntegerField()
    avg_latency_ms = serializers.FloatField()
    p95_latency_ms = serializers.FloatField()
    p99_latency_ms = serializers.FloatField()
    collected_at = serializers.DateTimeField()


class NodeMetricsSerializer(CacheMetricsSerializer):
    """Counters of one node. load: reported by the node, 0 to 1."""

    node_id = serializers.CharField()
    load = serializers.FloatField()


class AuditDaySerializer(serializers.Serializer[Any]):
    """Looks at a node in one UTC day, over one path."""

    day = serializers.DateField()
    path = serializers.ChoiceField(
        choices=["direct", "forwarded"], help_text="As a client with a ticket, or as the brain."
    )
    is_recheck = serializers.BooleanField(help_text="While the node was quarantined.")
    looks = serializers.IntegerField()
    right = serializers.IntegerField()
    wrong = serializers.IntegerField(help_text="Bytes came, and were not the object's.")
    missing = serializers.IntegerField(help_text="404.")
    unanswered = serializers.IntegerField()
    bytes = serializers.IntegerField()


class AuditFailureSerializer(serializers.Serializer[Any]):
    """A look that found wrong bytes."""

    sha256 = serializers.CharField(help_text="The object's.")
    path = serializers.ChoiceField(choices=["direct", "forwarded"])
    is_recheck = serializers.BooleanField()
    hour = serializers.DateTimeField()


@extend_schema_serializer(many=False)
class NodeAuditsSerializer(serializers.Serializer[Any]):
    """Audits of the last 90 days, latest first; at most 100 failures."""

    days = AuditDaySerializer(many=True)
    failures = AuditFailureSerializer(many=True)


class HistorySerializer(serializers.Serializer[Any]):
    """Samples of the metrics, oldest first; counters only rise."""

    interval_s = serializers.IntegerField()
    samples = CacheMetricsSerializer(many=True)


class HistoryQuerySerializer(StrictSerializer):
    """The latest ``hours``."""

    hours = serializers.IntegerField(
        min_value=1, max_value=24 * 366, default=24, help_text="How far back."
    )


class NodeSerializer(serializers.Serializer[Any]):
    """A worker node. Only its operator sees the fields from ``endpoint`` on."""

    node_id = serializers.CharField()
    region = serializers.CharField()
    status = serializers.CharField()
    health = serializers.CharField()
    capacity_bytes = serializers.IntegerField()
    used_bytes = serializers.IntegerField()
    created_at = serializers.DateTimeField(allow_null=True)
    last_seen_at = serializers.DateTimeField(allow_null=True)
    is_own = serializers.BooleanField()
    endpoint = serializers.CharField(required=False)
    created_by = serializers.CharField(required=False, allow_blank=True)
    object_count = serializers.IntegerField(required=False)
    evictions = serializers.IntegerField(required=False)
    load = serializers.FloatField(required=False)
    status_reason = serializers.CharField(
        required=False, allow_blank=True, help_text="Such as why it is quarantined."
    )
    status_at = serializers.DateTimeField(required=False, allow_null=True)


@extend_schema_serializer(many=False)
class NodeListSerializer(serializers.Serializer[Any]):
    """All nodes: there are few enough for one answer."""

    nodes = NodeSerializer(many=True)


class RegistrationSerializer(serializers.Serializer[Any]):
    """A registered node. No later answer holds ``node_secret``."""

    node_id = serializers.CharField()
    node_secret = serializers.CharField()
    status = serializers.CharField()
    region = serializers.CharField()
    capacity_bytes = serializers.IntegerField()
    endpoint = serializers.CharField()
    brain_url = serializers.CharField()
    created_at = serializers.DateTimeField(allow_null=True)


class NodeRequestSerializer(StrictSerializer):
    """A worker to register. endpoint: its URL; region: as ``eu-central``."""

    endpoint = serializers.CharField(max_length=255)
    region = serializers.RegexField(NAME, max_length=LABEL_CHARS)
    capacity_bytes = serializers.IntegerField(min_value=1, max_value=CAPACITY_LIMIT_BYTES)


class PurgeRequestSerializer(StrictSerializer):
    """What to purge: the union of ``prefix``, ``keys`` and ``tags``; empty is absent.

    A key or prefix is ``bucket/key``, or a URL at a public name or at a host of the bucket. A tag
    is ``bucket/tag``.
    """

    prefix = serializers.CharField(
        max_length=PASTED_CHARS,
        required=False,
        allow_blank=True,
        allow_null=True,
        trim_whitespace=False,
        validators=[_refuse_nul],
    )
    keys = serializers.ListField(
        child=serializers.CharField(
            max_length=PASTED_CHARS, trim_whitespace=False, validators=[_refuse_nul]
        ),
        max_length=MAX_KEYS,
        required=False,
        allow_null=True,
    )
    tags = serializers.ListField(
        child=serializers.CharField(
            max_length=PASTED_CHARS, trim_whitespace=False, validators=[_refuse_nul]
        ),
        max_length=MAX_TAGS,
        required=False,
        allow_null=True,
        help_text="Of an HTTP origin's `Cache-Tag` or `Surrogate-Key`, or an object's `key=value`.",
    )
    all = serializers.BooleanField(default=False)
    preview = serializers.BooleanField(default=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Drop empty fields; refuse a purge that names nothing."""
        kept = {name: value for name, value in attrs.items() if value}
        if not kept.keys() & {"prefix", "keys", "tags", "all"}:
            raise serializers.ValidationError(
                {"keys": ["Name keys, a prefix or tags, or send all: true."]}, code="required"
            )
        return kept


class PurgeSerializer(serializers.Serializer[Any]):
    """Exact counts of a purge."""

    objects_purged = serializers.IntegerField()
    bytes_freed = serializers.IntegerField()
    nodes_affected = serializers.IntegerField()


class BucketSerializer(DeclaredSerializer):
    """A bucket. public_name: of ``/p/{public_name}/{key}``; origin: None is the built-in one."""

    name = serializers.CharField()
    public_name = serializers.CharField()
    public_url = serializers.SerializerMethodField(
        help_text="What its objects' public URLs begin with, beside its own hosts; null if private."
    )
    origin = serializers.CharField(allow_null=True)
    origin_prefix = serializers.CharField()
    options = OptionsOf(BucketOptions)
    created_at = serializers.DateTimeField(allow_null=True)

    def get_public_url(self, row: Mapping[str, Any]) -> str | None:
        """Return where everyone reads it at the object API."""
        return f"{settings.CACHE.s3_url}/p/{row['public_name']}/" if row["is_public"] else None


class BucketChangeSerializer(DeclaredSerializer, StrictSerializer):
    """The fields of a bucket that can change."""

    options = OptionsOf(BucketOptions)


class BucketRequestSerializer(DeclaredSerializer, StrictSerializer):
    """A bucket to create. name: 3 to 63 of ``a-z 0-9 . -`` (as S3); origin: its name."""

    options = OptionsOf(BucketOptions, sets_defaults=True)
    name = serializers.RegexField(
        rf"\A{BUCKET.pattern}\Z", max_length=63, error_messages={"invalid": BUCKET_RULE}
    )
    origin = serializers.CharField(max_length=63, required=False, allow_null=True)
    origin_prefix = serializers.CharField(max_length=PREFIX_CHARS, required=False, allow_blank=True)


class FailureSerializer(serializers.Serializer[Any]):
    """Why responses of a bucket failed."""

    cause = serializers.CharField(
        help_text=f"The word in `Cache-Status` and in the log, also `{STATUS}` with a number:\n"
        + "\n".join(f"* `{word}`: {meaning}" for word, meaning in MEANINGS.items())
    )
    meaning = serializers.CharField(help_text="Its sentence of these, '' for a newer word.")
    count = serializers.IntegerField(help_text="Since there was a week without it.")
    last_at = serializers.DateTimeField()


class HostRecordSerializer(serializers.Serializer[Any]):
    """A DNS record to create and to keep."""

    type = serializers.CharField()
    name = serializers.CharField()
    value = serializers.CharField()


class HostSerializer(serializers.Serializer[Any]):
    """A host of a bucket. gone_since: when its DNS record was first missing, or null.

    record: the TXT record that proves it. cname: the record that leads clients to the object API;
    null if that has an address and no name.
    """

    host = serializers.CharField()
    proved_at = serializers.DateTimeField(allow_null=True)
    gone_since = serializers.DateTimeField(allow_null=True)
    record = HostRecordSerializer()
    cname = HostRecordSerializer(allow_null=True)


class HostRequestSerializer(StrictSerializer):
    """A host to prove: ``files.example.com``; names beyond ASCII in their ``xn--`` form."""

    host = serializers.CharField(max_length=254)


class AccessKeySerializer(DeclaredSerializer):
    """A key pair for S3 clients, without its secret."""

    access_key_id = serializers.CharField()
    options = OptionsOf(AccessKeyOptions)
    created_by = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField(allow_null=True)
    last_used_at = serializers.DateTimeField(allow_null=True)


class NewAccessKeySerializer(AccessKeySerializer):
    """A new key pair with its secret, which no later answer holds, and the endpoint to use."""

    secret_access_key = serializers.CharField()
    endpoint = serializers.CharField()


class AccessKeyRequestSerializer(DeclaredSerializer, StrictSerializer):
    """A key to create. access: ``read``, or ``write``, which can read as well."""

    options = OptionsOf(AccessKeyOptions, sets_defaults=True)


class OriginSerializer(DeclaredSerializer):
    """An origin, without its secret."""

    name = serializers.CharField()
    kind = serializers.CharField()
    config = serializers.DictField()
    has_secret = serializers.BooleanField()
    options = OptionsOf(OriginOptions)
    created_by = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField(allow_null=True)


class OriginRequestSerializer(DeclaredSerializer, StrictSerializer):
    """An origin to create.

    config and secret depend on the kind: docs/cache.md lists them. Without a secret it is read
    anonymously, never with an identity of the machine.
    """

    name = serializers.RegexField(NAME, max_length=LABEL_CHARS)
    kind = serializers.ChoiceField(get_args(OriginKind))
    config = serializers.DictField(
        child=serializers.CharField(max_length=CONFIG_CHARS), default=dict
    )
    secret = serializers.DictField(
        child=serializers.CharField(max_length=SECRET_CHARS, trim_whitespace=False), required=False
    )
    options = OptionsOf(OriginOptions, sets_defaults=True)


class OriginChangeSerializer(DeclaredSerializer, StrictSerializer):
    """What of an origin can change.

    secret: new credentials, all of them; null: it is read anonymously from now on.
    """

    secret = serializers.DictField(
        child=serializers.CharField(max_length=SECRET_CHARS, trim_whitespace=False),
        allow_null=True,
        required=False,
    )
    options = OptionsOf(OriginOptions)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse a change of nothing."""
        if not attrs:
            raise serializers.ValidationError(
                {"secret": ["Send credentials, null, or an option."]}, code="required"
            )
        return attrs


# Whole lists: the limits of an environment keep them short.


@extend_schema_serializer(many=False)
class BucketListSerializer(serializers.Serializer[Any]):
    """All buckets of the environment."""

    results = BucketSerializer(many=True)


@extend_schema_serializer(many=False)
class FailureListSerializer(serializers.Serializer[Any]):
    """All causes of the last week."""

    results = FailureSerializer(many=True)


@extend_schema_serializer(many=False)
class HostListSerializer(serializers.Serializer[Any]):
    """All hosts of a bucket."""

    results = HostSerializer(many=True)


@extend_schema_serializer(many=False)
class AccessKeyListSerializer(serializers.Serializer[Any]):
    """All access keys of the environment."""

    results = AccessKeySerializer(many=True)


@extend_schema_serializer(many=False)
class OriginListSerializer(serializers.Serializer[Any]):
    """All origins of the environment."""

    results = OriginSerializer(many=True)
