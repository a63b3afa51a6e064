"""Headers of objects: those that an upload stores, those that a response returns."""

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Final

from edgecache.brain.aws import checksums
from edgecache.brain.aws.errors import S3Error
from edgecache.brain.aws.requests import S3Request
from edgecache.brain.core.values import (
    DEFAULT_CONTENT_TYPE,
    METADATA_PREFIX,
    OBJECT_HEADERS,
    TAGGING_HEADER,
    BucketInfo,
    ObjectVersion,
    WrittenFields,
)
from edgecache.brain.s3 import tags
from edgecache.http.headers import decoded
from edgecache.http.response_head import http_date
from edgecache.runtime.bounded_cache import Memo

METADATA_LIMIT_BYTES: Final = 2048
CONTENT_TYPE_LIMIT: Final = 255
HEADER_LIMIT_BYTES: Final = 8192
TAGGING_COUNT_HEADER: Final = "x-amz-tagging-count"
OVERRIDES: Final = {f"response-{name}": name for name in (*OBJECT_HEADERS, "content-type")}
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
# Canned ACLs that ask for what holds.
_OF_PRIVATE: Final = ("private", "bucket-owner-full-control")
_OF_PUBLIC: Final = ("public-read", "bucket-owner-full-control")


def check_settings(request: S3Request, *, is_public: bool) -> None:
    """Refuse an ACL and a storage class that a new object, or a new bucket, would not have.

    is_public: everyone reads the bucket's objects.
    Raises S3Error: AccessControlListNotSupported, InvalidStorageClass.
    """
    if request.header("x-amz-acl"):
        check_acl(request.header("x-amz-acl"), is_public=is_public)
    if request.header("x-amz-storage-class") not in {"", "STANDARD"}:
        raise S3Error("InvalidStorageClass")


def check_acl(acl: str, *, is_public: bool) -> None:
    """Refuse a canned ACL that does not describe who reads. is_public: everyone does.

    Raises S3Error AccessControlListNotSupported.
    """
    if is_public and acl == "private":
        raise S3Error(
            "AccessControlListNotSupported",
            "The bucket is public, so x-amz-acl: private is not possible: everyone would read the "
            "object.",
        )
    if acl not in (_OF_PUBLIC if is_public else _OF_PRIVATE):
        raise S3Error(
            "AccessControlListNotSupported",
            f"ACLs are not offered: x-amz-acl: {acl[:100]} is not what holds for the bucket.",
        )


def upload_fields(request: S3Request, bucket: BucketInfo) -> WrittenFields:
    """Return what an upload's headers say of the object.

    Raises S3Error: MetadataTooLarge, InvalidArgument, and what ``check_settings`` and
    ``tags.of_upload`` raise.
    """
    check_settings(request, is_public=bucket.is_public)
    metadata = metadata_of(request)
    content_type = request.header("content-type") or DEFAULT_CONTENT_TYPE
    if len(content_type) > CONTENT_TYPE_LIMIT:
        raise S3Error("InvalidArgument", "The Content-Type is too long.")
    kept = {}
    for name in OBJECT_HEADERS:
        value = request.header(name)
        if name == "content-encoding" and "aws-chunked" in value:
            # The chunks of the upload are not part of the object.
            codings = [word.strip() for word in value.split(",")]
            value = ", ".join(word for word in codings if word and word != "aws-chunked")
        if value:
            kept[name] = decoded(value)
    if sum(map(len, kept.values())) > HEADER_LIMIT_BYTES:
        raise S3Error("MetadataTooLarge")
    tagging = tags.of_upload(request, bucket)
    if tagging:
        kept[TAGGING_HEADER] = tagging
    return WrittenFields(content_type=decoded(content_type), headers=kept, metadata=metadata)


def metadata_of(request: S3Request) -> dict[str, str]:
    """Return the ``x-amz-meta-`` headers by the rest of their names; equal names are joined.

    Raises S3Error MetadataTooLarge.
    """
    found: dict[str, str] = {}
    for name, value in request.headers.items():
        if name.startswith(METADATA_PREFIX):
            short = name.removeprefix(METADATA_PREFIX)
            text = decoded(value.strip())
            found[short] = f"{found[short]},{text}" if short in found else text
    size = sum(len(name) + len(value.encode()) for name, value in found.items())
    if size > METADATA_LIMIT_BYTES:
        raise S3Error(
            "MetadataTooLarge",
            extra={"Size": str(size), "MaxSizeAllowed": str(METADATA_LIMIT_BYTES)},
        )
    return found


def overrides_of(request: S3Request) -> dict[str, str]:
    """Return the headers that ``response-…`` parameters put in the place of the object's.

    Raises S3Error InvalidArgument: a value that is not valid in a header.
    """
    found: dict[str, str] = {}
    if not request.by_name:
        return found
    for parameter, name in OVERRIDES.items():
        if request.has(parameter):
            value = request.query(parameter)
            if _CONTROL.search(value) or not _is_latin(value):
                raise S3Error(
                    "InvalidArgument",
                    "Header value cannot be represented using ISO-8859-1.",
                    extra={"ArgumentName": parameter},
                )
            found[name] = value
    return found


def response_headers(
    found: ObjectVersion, *, overrides: Mapping[str, str], shown: Mapping[str, str]
) -> Sequence[tuple[str, str]]:
    """Return the headers that describe an object, without its length, which a range changes.

    shown: checksums, as they are stored.
    """
    if not overrides and not shown:
        return _plain(found)
    return _described(found, overrides, shown)


def _described(
    found: ObjectVersion, overrides: Mapping[str, str], shown: Mapping[str, str]
) -> Sequence[tuple[str, str]]:
    described = {"content-type": found.content_type, **found.sent_headers, **overrides}
    lines = [
        *([("etag", f'"{found.etag}"')] if found.etag else []),
        ("last-modified", http_date(int(found.last_modified.timestamp()))),
        ("accept-ranges", "bytes"),
    ]
    lines += [(name, value) for name, value in described.items() if value]
    lines += [(METADATA_PREFIX + name, encode_value(text)) for name, text in found.metadata.items()]
    tagging = found.headers.get(TAGGING_HEADER)
    if tagging:
        lines.append((TAGGING_COUNT_HEADER, str(tagging.count("&") + 1)))
    return lines + checksums.headers(shown)


# Nearly every response has these, and popular objects the same ones each time.
_plain: Final = Memo(lambda found: tuple(_described(found, {}, {})))


def encode_value(text: str) -> str:
    """Return text as a header value: beyond ASCII by RFC 2047, as AWS does."""
    if text.isascii():
        return text
    return f"=?UTF-8?B?{base64.b64encode(text.encode()).decode()}?="


def _is_latin(text: str) -> bool:
    return not text or ord(max(text)) < 0x100
