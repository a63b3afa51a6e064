"""Buckets of an environment. A bucket of another environment does not exist (404)."""

import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from common.principals import Scope
from edgecache.api import client, origins
from edgecache.api.changes import change_as_read
from edgecache.api.client import Row, tenant
from edgecache.api.errors import BucketNotFound
from edgecache.api.failure_causes import meaning_of
from edgecache.protocol.names import BUCKET
from edgecache.protocol.resources import BucketOptions


def all_of(scope: Scope) -> list[Row]:
    """Return the environment's buckets by name, each with the name of its ``origin``."""
    return client.list_rows(scope, "buckets")


def find(scope: Scope, name: str) -> Row:
    """Return one bucket. Raises BucketNotFound."""
    # Anything else must not become part of a path of the brain.
    if not BUCKET.fullmatch(name):
        raise BucketNotFound
    row: Row | None = client.call("GET", f"/v1/buckets/{name}", query=tenant(scope))
    if row is None:
        raise BucketNotFound
    return row


def failures(scope: Scope, name: str) -> list[Row]:
    """Return why responses of a bucket failed in the last week, each cause with its ``meaning``.

    Raises BucketNotFound.
    """
    if not BUCKET.fullmatch(name):
        raise BucketNotFound
    path = f"/v1/buckets/{name}/failures"
    found = client.call("GET", path, query=tenant(scope), disabled={"failures": []})
    return [{**row, "meaning": meaning_of(row["cause"])} for row in found["failures"]]


def create(scope: Scope, body: Mapping[str, Any]) -> Row:
    """Create a bucket. body: ``name``, ``origin`` (its name) and the switches.

    Raises BucketTaken, OriginNotFound, InvalidRequest.
    """
    fields = dict(body)
    origin = fields.pop("origin", None)
    if origin:
        fields["origin_id"] = origins.find(scope, origin)["id"]
    created: Row = client.call("POST", "/v1/buckets", query=tenant(scope), body=fields)
    return created


def change(
    scope: Scope, name: str, body: Mapping[str, Any], *, check: Callable[[Row], bool] | None = None
) -> Row:
    """Change a bucket's switches.

    check: called with the bucket before the change, and may refuse it; True if the bucket must
    still be so when it is changed. Raises BucketNotFound, ChangedSinceRead, InvalidRequest.
    """
    return change_as_read(
        partial(find, scope, name),
        lambda row, expected: _send_change(scope, row, {**body, **expected}),
        BucketOptions,
        check,
    )


def _send_change(scope: Scope, row: Row, body: Mapping[str, Any]) -> Row:
    changed: Row = client.call("PATCH", f"/v1/buckets/{row['id']}", query=tenant(scope), body=body)
    return changed


def delete(scope: Scope, name: str) -> None:
    """Delete an empty bucket. Raises BucketNotFound, BucketNotEmpty."""
    row = find(scope, name)
    client.call("DELETE", f"/v1/buckets/{row['id']}", query=tenant(scope))


def revoke_links(scope: Scope, name: str) -> None:
    """End all signed links of a bucket, in every brain when it returns. Raises BucketNotFound."""
    _send_revocation(scope, find(scope, name))


def _send_revocation(scope: Scope, row: Row) -> None:
    client.call("DELETE", f"/v1/buckets/{row['id']}/signed-links", query=tenant(scope))


def make_all_private(scope: Scope) -> None:
    """End public access to every bucket of the environment, and its signed links.

    Safe to repeat.
    """
    for row in all_of(scope):
        with contextlib.suppress(BucketNotFound):
            _send_change(scope, row, {"is_public": False})
            _send_revocation(scope, row)
