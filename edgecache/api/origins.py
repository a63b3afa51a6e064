"""Origins of an environment: where its buckets fetch objects from."""

from collections.abc import Callable, Mapping
from typing import Any

from common.errors import ChangedSinceRead
from common.principals import Principal, Scope
from edgecache.api import client
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
    row = find(scope, name)
    sent = {**body, "secret": body["secret"] or {}} if "secret" in body else {**body}
    if check is not None and check(row):
        sent["expected"] = {option: row[option] for option in OriginOptions.__struct_fields__}
    try:
        changed: Row = client.call(
            "PATCH", f"/v1/origins/{row['id']}", query=tenant(scope), body=sent
        )
    except ChangedSinceRead:
        # It was changed a moment ago: now the check says what.
        if check is not None:
            check(find(scope, name))
        raise
    return changed


def delete(scope: Scope, name: str) -> None:
    """Delete an origin that no bucket uses. Raises OriginNotFound, OriginInUse."""
    row = find(scope, name)
    client.call("DELETE", f"/v1/origins/{row['id']}", query=tenant(scope))
