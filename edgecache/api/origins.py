"""Origins of an environment: where its buckets fetch objects from."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from common.principals import Principal, Scope
from edgecache.api import client
from edgecache.api.changes import change_as_read
from edgecache.api.client import Row, tenant
from edgecache.api.errors import OriginNotFound
from edgecache.protocol.resources import OriginOptions


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


def change(
    scope: Scope, name: str, body: Mapping[str, Any], *, check: Callable[[Row], bool] | None = None
) -> Row:
    """Change an origin's options, and its ``secret``; None: it is read anonymously.

    check: called with the origin before the change, and may refuse it; True if its options must
    still be so when it is changed. Raises OriginNotFound, ChangedSinceRead, InvalidRequest.
    """
    secret = {"secret": body["secret"] or {}} if "secret" in body else {}

    def send(row: Row, expected: Row) -> Row:
        sent = {**body, **secret, **expected}
        changed: Row = client.call(
            "PATCH", f"/v1/origins/{row['id']}", query=tenant(scope), body=sent
        )
        return changed

    return change_as_read(partial(find, scope, name), send, OriginOptions, check)


def delete(scope: Scope, name: str) -> None:
    """Delete an origin that no bucket uses. Raises OriginNotFound, OriginInUse."""
    row = find(scope, name)
    client.call("DELETE", f"/v1/origins/{row['id']}", query=tenant(scope))
