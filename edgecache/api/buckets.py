"""Buckets of an environment. A bucket of another environment does not exist (404)."""

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from common.errors import ChangedSinceRead
from common.principals import Scope
from edgecache.api import client, origins
from edgecache.api.client import Row, tenant
from edgecache.api.errors import BucketNotFound

# What a change can set.
OPTIONS: Final = (
    "is_public",
    "allows_redirect",
    "verifies_reads",
    "forwards_writes",
    "forwarded_headers",
)


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


def change(
    scope: Scope, name: str, body: Mapping[str, Any], *, check: Callable[[Row], bool] | None = None
) -> Row:
    """Change a bucket's switches.

    check: called with the bucket before the change, and may refuse it; True if the bucket must
    still be so when it is changed. Raises BucketNotFound, ChangedSinceRead, InvalidRequest.
    """
    row = find(scope, name)
    expected = {}
    if check is not None and check(row):
        expected = {"expected": {option: row[option] for option in OPTIONS}}
    path = f"/v1/buckets/{row['id']}"
    try:
        changed: Row = client.call("PATCH", path, query=tenant(scope), body={**body, **expected})
    except ChangedSinceRead:
        # It was changed a moment ago: now the check says what.
        if check is not None:
            check(find(scope, name))
        raise
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
