"""Objects of an environment, through the brain: purged, warmed, listed, described, deleted, signed.

A presigned URL reads or writes a single object without an access key. It is valid for one method
and one key, and for an hour at most; a presigned form, for files under one key or prefix. A signed
link opens an object, or a folder, at a bucket's public doors, for a year at most. Anyone who has
one can use it. No secret leaves the brain.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import quote

from django.conf import settings

from common.principals import Scope
from edgecache.api import client
from edgecache.api.client import Row, tenant

NOTHING_PURGED: Final = {"objects_purged": 0, "bytes_freed": 0, "nodes_affected": 0}

URL_DEFAULT_S: Final = 300
URL_LIMIT_S: Final = 3600
LINK_DEFAULT_S: Final = 86_400
LINK_LIMIT_S: Final = 365 * 86_400
FORM_FILE_LIMIT_BYTES: Final = 5 * 2**30


def purge(scope: Scope, body: Mapping[str, Any]) -> dict[str, int]:
    """Remove objects from the cache; every brain sees it when this returns.

    body: ``keys`` (each ``bucket/key``), ``prefix`` (``bucket/…``), ``tags`` (each ``bucket/tag``),
    ``all``, ``preview``; the union of what is given is purged. Returns exact counts.
    """
    counts: dict[str, int] = client.call(
        "POST", "/v1/purge", body={**tenant(scope), **body}, disabled=NOTHING_PURGED
    )
    return counts


def warm(scope: Scope, keys: list[str]) -> dict[str, int]:
    """Fetch objects into the cache before anyone reads them; return ``warmed`` and ``failed``."""
    answer: dict[str, Any] = client.call(
        "POST",
        "/v1/warm",
        body={**tenant(scope), "keys": keys},
        disabled={"warmed": 0, "failed": []},
    )
    return {"warmed": answer["warmed"], "failed": len(answer["failed"])}


def page_of(scope: Scope, bucket_name: str, query: Mapping[str, Any]) -> Row:
    """Return a page of keys in the order of their UTF-8 bytes.

    query: ``prefix``, ``delimiter``, ``after``, ``limit``.
    Raises BucketNotFound, OriginReadOnly (an origin that cannot list), OriginFailed.
    """
    asked = {**tenant(scope), "bucket": bucket_name, **query}
    page: Row = client.call("GET", "/v1/objects", query=asked)
    return {
        "objects": page["objects"],
        "prefixes": page["prefixes"],
        "next_after": page["next"],
    }


def find(scope: Scope, bucket_name: str, key: str) -> Row:
    """Return one object's size, type, headers and metadata.

    Raises BucketNotFound, ObjectNotFound, OriginFailed.
    """
    asked = {**tenant(scope), "bucket": bucket_name, "key": key}
    found: Row = client.call("GET", "/v1/objects/details", query=asked)
    return found


def versions_of(scope: Scope, bucket_name: str, query: Mapping[str, Any]) -> Row:
    """Return a page of versions and delete markers, of each key the newest first.

    query: ``prefix``, ``delimiter``, ``after``, ``after_version``, ``limit``.
    Raises BucketNotFound, OriginReadOnly, OriginFailed.
    """
    asked = {**tenant(scope), "bucket": bucket_name, **query}
    page: Row = client.call("GET", "/v1/objects/versions", query=asked)
    return {
        "versions": [row | {"is_delete_marker": row["size"] is None} for row in page["versions"]],
        "prefixes": page["prefixes"],
        "next_after": page["next"],
        "next_version": page["next_version"],
    }


def restore(scope: Scope, bucket_name: str, body: Mapping[str, Any]) -> Row:
    """Make a version of an object the newest one again, as a copy; return its ``version_id``.

    Raises BucketNotFound, ObjectNotFound.
    """
    wanted = {**tenant(scope), "bucket": bucket_name, **body}
    made: Row = client.call("POST", "/v1/objects/versions/restore", body=wanted)
    return made


def delete_version(scope: Scope, bucket_name: str, body: Mapping[str, Any]) -> None:
    """Delete one version of an object, or a delete marker. Raises BucketNotFound."""
    wanted = {**tenant(scope), "bucket": bucket_name, **body}
    client.call("POST", "/v1/objects/versions/delete", body=wanted)


def delete(scope: Scope, bucket_name: str, keys: list[str]) -> None:
    """Delete objects at their origin and from the cache, ignoring absent ones.

    Raises BucketNotFound, OriginReadOnly, OriginFailed.
    """
    body = {**tenant(scope), "bucket": bucket_name, "keys": keys}
    client.call("POST", "/v1/objects/delete", body=body)


def url_to_read(
    scope: Scope, bucket_name: str, body: Mapping[str, Any], *, origin: str, now: datetime
) -> Row:
    """Return ``url`` and ``expires_at``.

    body: ``key``, ``expires_in_s``, ``disposition``, and ``version_id`` of an older version.
    origin: the web origin of the pages that may use the URL.

    Raises BucketNotFound, InvalidRequest.
    """
    wanted = {
        "step": "get",
        "key": body["key"],
        "disposition": _disposition(body["disposition"], body["key"]),
        "version_id": body.get("version_id", ""),
    }
    made = _signed_urls(scope, bucket_name, wanted, body["expires_in_s"], origin)
    return {"url": made["urls"][0], "expires_at": _expires_at(body, now)}


def url_to_write(
    scope: Scope, bucket_name: str, body: Mapping[str, Any], *, origin: str, now: datetime
) -> Row:
    """Return ``method``, ``urls`` and ``expires_at``, for a whole object or a step of an upload.

    body: ``key``, ``step``, ``expires_in_s``, and as the step needs them ``upload_id``,
    ``part_numbers``, ``content_type`` and ``if_none_match``.
    Raises BucketNotFound, InvalidRequest.
    """
    wanted = {name: value for name, value in body.items() if name != "expires_in_s"}
    made = _signed_urls(scope, bucket_name, wanted, body["expires_in_s"], origin)
    return made | {"expires_at": _expires_at(body, now)}


def form_to_write(scope: Scope, bucket_name: str, body: Mapping[str, Any], *, now: datetime) -> Row:
    """Return ``url``, ``fields`` and ``expires_at`` of a form that uploads a file.

    body: ``key`` or ``prefix``, ``max_bytes``, ``content_type``, ``redirect_url``,
    ``expires_in_s``.
    Raises BucketNotFound, InvalidRequest.
    """
    asked = {
        **tenant(scope),
        "bucket": bucket_name,
        "endpoint": settings.CACHE.s3_url,
        "expires_s": body["expires_in_s"],
        "key": body.get("key") or body["prefix"],
        "is_prefix": "prefix" in body,
        **{name: body[name] for name in ("max_bytes", "content_type", "redirect_url")},
    }
    made: Row = client.call("POST", "/v1/objects/presigned-forms", body=asked)
    return made | {"expires_at": _expires_at(body, now)}


def signed_link(scope: Scope, bucket_name: str, body: Mapping[str, Any]) -> Row:
    """Return ``url``, ``query`` and ``expires_at`` of a link at one of the bucket's public doors.

    body: ``key`` or ``prefix``, ``expires_in_s``, and maybe ``query`` and ``host``.
    Raises BucketNotFound, HostNotFound, InvalidRequest.
    """
    wanted = {name: value for name, value in body.items() if name != "expires_in_s"}
    asked = {
        **tenant(scope),
        "bucket": bucket_name,
        "endpoint": settings.CACHE.s3_url,
        "expires_s": body["expires_in_s"],
        **wanted,
    }
    made: Row = client.call("POST", "/v1/objects/signed-links", body=asked)
    return made


def _signed_urls(
    scope: Scope, bucket_name: str, wanted: Mapping[str, Any], expires_s: int, origin: str
) -> Row:
    body = {
        **tenant(scope),
        "bucket": bucket_name,
        "endpoint": settings.CACHE.s3_url,
        "expires_s": expires_s,
        "origin": origin,
        **wanted,
    }
    made: Row = client.call("POST", "/v1/objects/presigned-urls", body=body)
    return made


def _expires_at(body: Mapping[str, Any], now: datetime) -> datetime:
    return now + timedelta(seconds=body["expires_in_s"])


def _disposition(kind: str, key: str) -> str:
    """Return the header with the name under which a browser saves the object (RFC 6266)."""
    name = key.rstrip("/").rpartition("/")[2] or "object"
    return f"{kind}; filename*=UTF-8''{quote(name, safe='')}"
