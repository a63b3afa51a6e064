"""JSON of objects and of the URLs to read and write them."""

from typing import Any, Final

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from common.api.views import StrictSerializer
from edgecache.api.objects import (
    FORM_FILE_LIMIT_BYTES,
    LINK_DEFAULT_S,
    LINK_LIMIT_S,
    URL_DEFAULT_S,
    URL_LIMIT_S,
)

KEY_BYTES: Final = 1024
PAGE: Final = 1000
MAX_DELETED_KEYS: Final = 1000
MAX_PARTS: Final = 100
LAST_PART: Final = 10_000
# What a header may hold: printable ASCII.
HEADER: Final = r"\A[\x20-\x7e]*\Z"
STEPS: Final = ("put", "create", "part", "complete", "abort")
OF_UPLOADS: Final = frozenset(("part", "complete", "abort"))
# What a form's fields may say in the place of a file's name.
FILENAME: Final = "${filename}"
# The steps after which the object is there.
WRITING: Final = frozenset(("put", "complete"))


class KeyField(serializers.CharField):
    """A key: 1 to 1,024 bytes of UTF-8 without NUL."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=KEY_BYTES, trim_whitespace=False, **options)

    def to_internal_value(self, data: Any) -> str:
        """Refuse what no bucket can hold."""
        value: str = super().to_internal_value(data)
        if "\0" in value or len(value.encode(errors="replace")) > KEY_BYTES:
            message = "A key has 1 to 1,024 bytes of UTF-8, and no NUL."
            raise serializers.ValidationError(message, code="invalid")
        return value


class ObjectQuerySerializer(StrictSerializer):
    """Which keys to list."""

    prefix = KeyField(default="", allow_blank=True, help_text="Keys that begin with it.")
    delimiter = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=16,
        trim_whitespace=False,
        help_text="Keys with it after the prefix become one of `prefixes`: `/` lists a folder.",
    )
    after = KeyField(default="", allow_blank=True, help_text="`next_after` of the page before.")
    limit = serializers.IntegerField(min_value=1, max_value=PAGE, default=100)


class ListedObjectSerializer(serializers.Serializer[Any]):
    """An object of a listing. etag: without quotes."""

    key = serializers.CharField()
    size = serializers.IntegerField()
    etag = serializers.CharField()
    last_modified = serializers.DateTimeField()


@extend_schema_serializer(many=False)
class ObjectPageSerializer(serializers.Serializer[Any]):
    """A page of keys in the order of their UTF-8 bytes. next_after: null at the end."""

    objects = ListedObjectSerializer(many=True)
    prefixes = serializers.ListField(child=serializers.CharField())
    next_after = serializers.CharField(allow_null=True)


class ObjectKeySerializer(StrictSerializer):
    """Names an object."""

    key = KeyField()


class ObjectSerializer(ListedObjectSerializer):
    """One object. headers: such as `cache-control`; metadata: `x-amz-meta-` without that."""

    content_type = serializers.CharField()
    headers = serializers.DictField(child=serializers.CharField())
    metadata = serializers.DictField(child=serializers.CharField())


class VersionIdField(serializers.RegexField):
    """The id of a version; `null` for what was written without versions."""

    def __init__(self, **options: Any) -> None:
        super().__init__(r"\A(null|[0-9a-f]{32})\Z", max_length=32, **options)


class VersionsQuerySerializer(ObjectQuerySerializer):
    """Which versions to list."""

    after_version = VersionIdField(
        default="", allow_blank=True, help_text="`next_version` of the page before."
    )


class VersionSerializer(ListedObjectSerializer):
    """A version of an object, or a delete marker, which has no size."""

    version_id = serializers.CharField()
    size = serializers.IntegerField(allow_null=True)
    is_latest = serializers.BooleanField()
    is_delete_marker = serializers.BooleanField()


@extend_schema_serializer(many=False)
class VersionPageSerializer(serializers.Serializer[Any]):
    """A page of versions, of each key the newest first. next_after: null at the end."""

    versions = VersionSerializer(many=True)
    prefixes = serializers.ListField(child=serializers.CharField())
    next_after = serializers.CharField(allow_null=True)
    next_version = serializers.CharField(allow_blank=True)


class VersionIdSerializer(serializers.Serializer[Any]):
    """The version that was made."""

    version_id = serializers.CharField()


class ObjectVersionSerializer(ObjectKeySerializer):
    """Names a version of an object."""

    version_id = VersionIdField()


class ObjectKeysSerializer(StrictSerializer):
    """Names up to a thousand objects."""

    keys = serializers.ListField(child=KeyField(), min_length=1, max_length=MAX_DELETED_KEYS)


class UrlRequestSerializer(ObjectKeySerializer):
    """What every URL needs."""

    expires_in_s = serializers.IntegerField(
        min_value=1, max_value=URL_LIMIT_S, default=URL_DEFAULT_S
    )


class DownloadUrlRequestSerializer(UrlRequestSerializer):
    """An object to read. disposition: whether a browser saves it or shows it."""

    disposition = serializers.ChoiceField(["attachment", "inline"], default="attachment")
    version_id = VersionIdField(required=False, help_text="Of an older version.")


class DownloadUrlSerializer(serializers.Serializer[Any]):
    """A URL that reads one object, with GET."""

    url = serializers.CharField()
    expires_at = serializers.DateTimeField()


class SignedLinkRequestSerializer(StrictSerializer):
    """What a link opens: one `key`, or all keys that begin with `prefix`.

    `query`: of the key's URL, if the bucket has an origin: it is then signed too. `host`: one of
    the bucket's; without it the link is at `/p/{public_name}/`. The same parameters open the key at
    all of these.
    """

    key = KeyField(required=False)
    prefix = KeyField(required=False)
    query = serializers.CharField(required=False, max_length=2048)
    host = serializers.CharField(required=False, max_length=253)
    expires_in_s = serializers.IntegerField(
        min_value=1, max_value=LINK_LIMIT_S, default=LINK_DEFAULT_S
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse a link to nothing, or to two things."""
        if ("key" in attrs) == ("prefix" in attrs):
            raise serializers.ValidationError({"key": ["Name a key, or a prefix."]})
        return attrs


class SignedLinkSerializer(serializers.Serializer[Any]):
    """A link, for GET and HEAD."""

    url = serializers.CharField()
    query = serializers.CharField(
        help_text="Of the URL. That of a prefix opens every URL below it."
    )
    expires_at = serializers.DateTimeField()


class UploadUrlsRequestSerializer(UrlRequestSerializer):
    """An object to write: whole (`put`), or in parts.

    `create`, `complete` and `abort` are S3's CreateMultipartUpload, CompleteMultipartUpload and
    AbortMultipartUpload; `part` takes `part_numbers`. All but `put` and `create` take the upload's
    `upload_id`. With a `content_type` the request must have it as its `Content-Type`, and with
    `if_none_match` this as its `If-None-Match`: an object that is there is then not replaced.
    """

    step = serializers.ChoiceField(STEPS, default="put")
    upload_id = serializers.RegexField(r"\A[A-Za-z0-9_-]+\Z", max_length=64, required=False)
    part_numbers = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=LAST_PART),
        min_length=1,
        max_length=MAX_PARTS,
        required=False,
    )
    content_type = serializers.RegexField(HEADER, max_length=255, required=False)
    if_none_match = serializers.ChoiceField(["*"], required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse a step without what it needs, or with what belongs to another."""
        step = attrs["step"]
        wanted = {"upload_id": step in OF_UPLOADS, "part_numbers": step == "part"}
        wrong = {
            name: [
                serializers.ErrorDetail(f"Step {step} needs it.", "required")
                if is_wanted
                else serializers.ErrorDetail(f"Step {step} has none.", "invalid")
            ]
            for name, is_wanted in wanted.items()
            if is_wanted != (name in attrs)
        }
        if "if_none_match" in attrs and step not in WRITING:
            wrong["if_none_match"] = [serializers.ErrorDetail(f"Step {step} has none.", "invalid")]
        if wrong:
            raise serializers.ValidationError(wrong)
        return attrs


class UploadUrlsSerializer(serializers.Serializer[Any]):
    """URLs for one step; for `part` one of each number, in their order."""

    method = serializers.CharField()
    urls = serializers.ListField(child=serializers.CharField())
    expires_at = serializers.DateTimeField()


class UploadFormRequestSerializer(StrictSerializer):
    """A form that uploads one file, of a given key or below a prefix, which its name follows.

    It replaces an object of the same key. With a `content_type` every file is stored as that. After
    the upload a browser goes to `redirect_url`, and otherwise stays where it is.
    """

    key = KeyField(required=False)
    prefix = KeyField(required=False, help_text="Such as `inbox/`.")
    max_bytes = serializers.IntegerField(
        min_value=1, max_value=FORM_FILE_LIMIT_BYTES, default=FORM_FILE_LIMIT_BYTES
    )
    content_type = serializers.RegexField(HEADER, max_length=255, default="")
    redirect_url = serializers.RegexField(r"\Ahttps?://[!-~]+\Z", max_length=2048, default="")
    expires_in_s = serializers.IntegerField(
        min_value=1, max_value=URL_LIMIT_S, default=URL_DEFAULT_S
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse both a key and a prefix, neither, and one that names a file's name."""
        given = [name for name in ("key", "prefix") if name in attrs]
        if len(given) != 1:
            message = "Name a key or a prefix."
            raise serializers.ValidationError({"key": [message]}, code="invalid")
        for name in (*given, "redirect_url"):
            if FILENAME in attrs[name]:
                message = f"{FILENAME} has a meaning in forms. For files of any name give a prefix."
                raise serializers.ValidationError({name: [message]}, code="invalid")
        return attrs


class UploadFormSerializer(serializers.Serializer[Any]):
    """Where to post a form, as multipart/form-data: these fields first, then `file`."""

    url = serializers.CharField()
    fields = serializers.DictField(child=serializers.CharField())  # type: ignore[assignment]  # a field of this name
    expires_at = serializers.DateTimeField()
