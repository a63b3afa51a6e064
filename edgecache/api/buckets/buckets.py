"""Buckets of an environment. A bucket of another environment does not exist (404)."""

import contextlib
from collections.abc import Mapping
from typing import Any

from edgecache.api import client
from edgecache.api.buckets import origins
from edgecache.api.client import Row, tenant
from edgecache.api.errors import BucketNotFound
from platform_site.lib.principals import Scope


def all_of(scope: Scope) -> list[Row]:
    """Return the environment's buckets by name, each with the name of its ``origin``."""
    rows = client.list_rows(scope, "buckets")
    names = origins.names_by_id(scope) if any(row["origin_id"] for row in rows) else {}
    shown = [row | {"origin": names.get(row["origin_id"])} for row in rows]
    return sorted(shown, key=lambda row: str(row["name"]))


def find(scope: Scope, name: str) -> Row:
    """Return one bucket. Raises BucketNotFound."""
    for row in all_of(scope):
        if row["name"] == name:
            return row
    raise BucketNotFound


def create(scope: Scope, body: Mapping[str, Any]) -> Row:
    """Create a bucket. body: ``name``, ``origin`` (its name) and the switches.

    Raises BucketTaken, OriginNotFound, InvalidRequest.
    """
    fields = dict(body)
    origin = fields.pop("origin", None)
    if origin:
        fields["origin_id"] = origins.find(scope, origin)["id"]
    created: Row = client.call("POST", "/v1/buckets", query=tenant(scope), body=fields)
    return created | {"origin": origin or None}


def change(scope: Scope, name: str, body: Mapping[str, Any]) -> Row:
    """Change a bucket's switches. Raises BucketNotFound, InvalidRequest."""
    row = find(scope, name)
    changed: Row = client.call("PATCH", f"/v1/buckets/{row['id']}", query=tenant(scope), body=body)
    return changed | {"origin": row["origin"]}


def delete(scope: Scope, name: str) -> None:
    """Delete an empty bucket. Raises BucketNotFound, BucketNotEmpty."""
    row = find(scope, name)
    client.call("DELETE", f"/v1/buckets/{row['id']}", query=tenant(scope))


def make_all_private(scope: Scope) -> None:
    """End public access to every bucket of the environment; safe to repeat."""
    for row in all_of(scope):
        with contextlib.suppress(BucketNotFound):
            change(scope, row["name"], {"is_public": False})
