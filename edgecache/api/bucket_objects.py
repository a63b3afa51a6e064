"""Objects of an environment's buckets: listed, described and deleted through the brain."""

from collections.abc import Mapping
from typing import Any

from common.principals import Scope
from edgecache.api import client
from edgecache.api.client import Row, tenant


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


def delete(scope: Scope, bucket_name: str, keys: list[str]) -> None:
    """Delete objects at their origin and from the cache, ignoring absent ones.

    Raises BucketNotFound, OriginReadOnly, OriginFailed.
    """
    body = {**tenant(scope), "bucket": bucket_name, "keys": keys}
    client.call("POST", "/v1/objects/delete", body=body)
