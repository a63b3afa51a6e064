"""URLs to read and write single objects without an access key, signed by the brain.

Each is valid for one method and one key, and for an hour at most. Anyone who has it can use it. No
secret leaves the brain.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import quote

from django.conf import settings

from common.principals import Scope
from edgecache.api import client
from edgecache.api.client import Row, tenant

DEFAULT_S: Final = 300
LIMIT_S: Final = 3600


def to_read(
    scope: Scope, bucket_name: str, body: Mapping[str, Any], *, origin: str, now: datetime
) -> Row:
    """Return ``url`` and ``expires_at``. body: ``key``, ``expires_in_s``, ``disposition``.

    origin: the web origin of the pages that may use the URL.

    Raises BucketNotFound, InvalidRequest.
    """
    wanted = {
        "step": "get",
        "key": body["key"],
        "disposition": _disposition(body["disposition"], body["key"]),
    }
    made = _signed(scope, bucket_name, wanted, body["expires_in_s"], origin)
    return {"url": made["urls"][0], "expires_at": _end(body, now)}


def to_write(
    scope: Scope, bucket_name: str, body: Mapping[str, Any], *, origin: str, now: datetime
) -> Row:
    """Return ``method``, ``urls`` and ``expires_at``, for a whole object or a step of an upload.

    body: ``key``, ``step``, ``expires_in_s``, and as the step needs them ``upload_id``,
    ``part_numbers``, ``content_type`` and ``if_none_match``.
    Raises BucketNotFound, InvalidRequest.
    """
    wanted = {name: value for name, value in body.items() if name != "expires_in_s"}
    made = _signed(scope, bucket_name, wanted, body["expires_in_s"], origin)
    return made | {"expires_at": _end(body, now)}


def _signed(
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


def _end(body: Mapping[str, Any], now: datetime) -> datetime:
    return now + timedelta(seconds=body["expires_in_s"])


def _disposition(kind: str, key: str) -> str:
    """Return the header with the name under which a browser saves the object (RFC 6266)."""
    name = key.rstrip("/").rpartition("/")[2] or "object"
    return f"{kind}; filename*=UTF-8''{quote(name, safe='')}"
