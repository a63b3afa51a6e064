"""Values shared by the brain's parts."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import UUID

from edgecache.brain.core.errors import KeyRefused, KeyTooLong
from edgecache.protocol.names import BUCKET
from edgecache.protocol.resources import BucketOptions

KEY_LIMIT_BYTES: Final = 1024
# Headers that are stored with an object, in addition to its type.
OBJECT_HEADERS: Final = (
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "expires",
)
# Stored among an object's headers, but never sent with it: its tags, in the form of a query.
TAGGING_HEADER: Final = "x-amz-tagging"
# Stored there as well: the id of a version; absent for the null version.
VERSION_HEADER: Final = "x-amz-version-id"
_NOT_SENT: Final = frozenset((TAGGING_HEADER, VERSION_HEADER))
METADATA_PREFIX: Final = "x-amz-meta-"
DEFAULT_CONTENT_TYPE: Final = "binary/octet-stream"

BUCKET_OPTIONS: Final = BucketOptions.__struct_fields__

_SEGMENTS: Final = re.compile(r"[/\\]")
_ADDRESS: Final = re.compile(r"\d+\.\d+\.\d+\.\d+")

Name = tuple[int, str, str]


@dataclass(frozen=True, slots=True)
class BlobManifest:
    """A blob's digests. chunks: of its blocks (``Blocks``); crc32 unsigned."""

    sha256: bytes
    size: int
    md5: bytes
    crc32: int
    chunks: bytes


@dataclass(frozen=True, slots=True)
class StagedFile:
    """Bytes received whole and synced to disk, under a temporary name.

    It must be passed to ``ObjectCache.put``, to ``UploadParts.storing``, or to ``discard`` of the
    data directory.
    """

    path: Path
    manifest: BlobManifest


@dataclass(frozen=True, slots=True)
class WrittenFields:
    """An object's fields, as set by its writer.

    etag: without quotes; empty means the MD5 in hex. headers: Cache-Control and the like, and the
    tags (TAGGING_HEADER); lower-case names. metadata: ``x-amz-meta-`` without that. parts: sizes,
    of a multipart upload.
    """

    content_type: str = DEFAULT_CONTENT_TYPE
    headers: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    checksums: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[int, ...] = ()
    etag: str = ""


@dataclass(frozen=True, slots=True)
class Conditions:
    """Preconditions of a write.

    if_match: the ETag that must be there, without quotes; ``*`` for any. if_none_match: the ETag
    that must not be there; ``*`` for any. upload: the id of the multipart upload that the write
    ends; it must be there.
    """

    if_match: str | None = None
    if_none_match: str | None = None
    upload: str = ""


ALWAYS: Final = Conditions()


@dataclass(frozen=True, slots=True)
class ObjectVersion:
    """One version of one key.

    generation: 0 if the directory does not have it (an origin's response to ``head``).
    sha256: empty while its bytes are being fetched, and if only the origin has them.
    size: bytes, or -1 while unknown.
    etag: without quotes.
    http: an HTTP origin's response as RFC 9111 needs it, or empty.
    crc32: of all bytes, unsigned; None if only the origin knows them.
    """

    bucket_id: int
    key: str
    variant: str
    generation: int
    sha256: bytes
    size: int
    etag: str
    content_type: str
    headers: Mapping[str, str]
    metadata: Mapping[str, str]
    checksums: Mapping[str, str]
    parts: tuple[int, ...]
    last_modified: datetime
    http: Mapping[str, Any]
    cached_at: datetime
    crc32: int | None = None

    @property
    def sent_headers(self) -> Mapping[str, str]:
        """The headers that every reader may see: all but the tags and the version's id."""
        if _NOT_SENT.isdisjoint(self.headers):
            return self.headers
        return {name: value for name, value in self.headers.items() if name not in _NOT_SENT}

    @property
    def version_id(self) -> str:
        """The version's id; empty for the null version."""
        return self.headers.get(VERSION_HEADER, "")


class DeleteMarker(NamedTuple):
    """A version that says that its object was deleted. version_id: empty for the null version."""

    version_id: str
    last_modified: datetime


class Deletion(NamedTuple):
    """A delete of an object, or of one of its versions, and its conditions: all must hold.

    version_id: None for the object. etag: without quotes, ``*`` for any. last_modified: to the
    second. size: bytes.
    """

    key: str
    version_id: str | None = None
    etag: str | None = None
    last_modified: datetime | None = None
    size: int | None = None

    @property
    def has_conditions(self) -> bool:
        return (self.etag, self.last_modified, self.size) != (None, None, None)


class WorkerSource(NamedTuple):
    """A worker that holds the bytes. endpoint: base URL, as ``http://127.0.0.1:9101``."""

    node_id: UUID
    endpoint: str


class Span(NamedTuple):
    """Bytes ``start`` to ``start + length - 1`` of a blob."""

    start: int
    length: int


class EnvironmentKey(NamedTuple):
    """The environment that tickets, usage and limits belong to."""

    organization_id: int
    environment_pk: int


class BucketInfo(BucketOptions, frozen=True, kw_only=True):
    """A bucket's row. origin_id: None is the built-in origin; origin: the name of another.

    links_generation: signed links of an earlier one are not valid any more.
    lifecycle: a digest of its rules, empty if it has none.
    """

    id: int
    tenant: EnvironmentKey
    name: str
    public_name: str
    origin_id: int | None
    origin: str | None
    origin_prefix: str
    created_at: datetime
    links_generation: int = 0
    lifecycle: str = ""

    @property
    def options(self) -> BucketOptions:
        """What a member has set."""
        return BucketOptions(**{name: getattr(self, name) for name in BUCKET_OPTIONS})


@dataclass(frozen=True, slots=True)
class ListedObject:
    """One line of a listing."""

    key: str
    size: int
    etag: str
    last_modified: datetime


@dataclass(frozen=True, slots=True)
class KeyPage:
    """A page of keys in the order of their UTF-8 bytes.

    prefixes: the groups that the delimiter makes, in order. next: ``start_after`` of the page that
    follows (a key or a group), None at the end.
    """

    objects: tuple[ListedObject, ...]
    prefixes: tuple[str, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class PurgeResult:
    """Exact counts of a purge.

    objects_purged: cached objects that it hit. bytes_freed: of blobs that no cached object names
    any more, times the nodes that held them. nodes_affected: these nodes, each once.
    """

    objects_purged: int
    bytes_freed: int
    nodes_affected: int


def fields_of(found: ObjectVersion) -> WrittenFields:
    """Return the fields of a version."""
    return WrittenFields(
        found.content_type,
        found.headers,
        found.metadata,
        found.checksums,
        found.parts,
        found.etag,
    )


def check_key(key: str) -> str:
    """Return a valid key.

    Raises KeyRefused for an empty one, for NUL and for lone surrogates; KeyTooLong.
    """
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        raise KeyRefused from None
    if size > KEY_LIMIT_BYTES:
        raise KeyTooLong
    if not size or "\0" in key:
        raise KeyRefused
    return key


def check_url_key(key: str) -> str:
    """Return a valid key of a URL, which may be empty: the root of an HTTP origin.

    Raises KeyRefused.
    """
    return key and check_key(key)


def has_dots(key: str) -> bool:
    """True if a server may take a segment for '.' or '..'; some ignore what follows a ';'."""
    return any(part.partition(";")[0] in {".", ".."} for part in _SEGMENTS.split(key))


def is_bucket_name(name: str) -> bool:
    """True if a new bucket may have this name (AWS's rules for general purpose buckets)."""
    return bool(
        BUCKET.fullmatch(name)
        and not _ADDRESS.fullmatch(name)
        # Each label begins and ends with a letter or digit, or no host name could have it.
        and not any(pair in name for pair in ("..", ".-", "-."))
        and not name.startswith(("xn--", "sthree-"))
        and not name.endswith(("-s3alias", "--ol-s3"))
    )


def host_name(authority: str) -> str:
    """Return the name in a Host header, in lower case, without port and trailing dot."""
    name, separator, port = authority.rpartition(":")
    return (name if separator and port.isdigit() else authority).lower().rstrip(".")
