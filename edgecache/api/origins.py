"""Origins of an environment: where its buckets fetch objects from."""

from collections.abc import Mapping
from typing import Any

from common.principals import Principal, Scope
from edgecache.api import client
from edgecache.api.client import Row, tenant
from edgecache.api.errors import OriginNotFound


def all_of(scope: Scope) -> list[Row]:
    """Return the environment's origins, without their secrets."""
    return client.list_rows(scope, "origins")


def find(scope: Scope, name: str) -> Row:
    """Return one origin. Raises OriginNotFound."""
    for row in all_of(scope):
        if row["name"] == name:
            return row
    raise OriginNotFound


def create(principal: Principal, body: Mapping[str, Any]) -> Row:
    """Create an origin. Raises InvalidRequest."""
    created: Row = client.call(
        "POST",
        "/v1/origins",
        query=tenant(principal.scope),
        body={**body, **client.creator(principal)},
    )
    return created


def change(scope: Scope, name: str, body: Mapping[str, Any]) -> Row:
    """Change an origin's options, and its ``secret``; None: it is read anonymously.

    Raises OriginNotFound, InvalidRequest.
    """
    path = f"/v1/origins/{find(scope, name)['id']}"
    secret = {"secret": body["secret"] or {}} if "secret" in body else {}
    changed: Row = client.call("PATCH", path, query=tenant(scope), body={**body, **secret})
    return changed


def delete(scope: Scope, name: str) -> None:
    """Delete an origin that no bucket uses. Raises OriginNotFound, OriginInUse."""
    row = find(scope, name)
    client.call("DELETE", f"/v1/origins/{row['id']}", query=tenant(scope))
