"""What an environment has in the cache: buckets, access keys, origins; and emptying it.

Every call names the caller's own organization and environment, so a foreign id is a 404.
"""

import contextlib
import re
from collections.abc import Mapping
from typing import Any, Final

from edgecache.api import client
from edgecache.api.errors import AccessKeyNotFound, BucketNotFound, OriginNotFound
from platform_site.lib.principals import Scope

NOTHING_PURGED: Final = {"objects_purged": 0, "bytes_freed": 0, "nodes_affected": 0}
# What is no access key's id must not become part of a path.
KEY_ID: Final = re.compile(r"[A-Z0-9]{4,32}")

Row = dict[str, Any]


def buckets(scope: Scope) -> list[Row]:
    """List the environment's buckets by name, each with the name of its ``origin``."""
    rows = _listed(scope, "buckets")
    names = _origin_names(scope) if any(row["origin_id"] for row in rows) else {}
    shown = [row | {"origin": names.get(row["origin_id"])} for row in rows]
    return sorted(shown, key=lambda row: str(row["name"]))


def bucket(scope: Scope, name: str) -> Row:
    """Give one bucket.

    Raises BucketNotFound.
    """
    for row in buckets(scope):
        if row["name"] == name:
            return row
    raise BucketNotFound


def create_bucket(scope: Scope, wanted: Mapping[str, Any]) -> Row:
    """Make a bucket. wanted: ``name``, ``origin`` (a name) and the switches.

    Raises BucketTaken, OriginNotFound, InvalidRequest.
    """
    body = dict(wanted)
    origin = body.pop("origin", None)
    if origin:
        body["origin_id"] = _origin(scope, origin)["id"]
    made: Row = client.call("POST", "/v1/buckets", query=tenant(scope), body=body)
    return made | {"origin": origin or None}


def change_bucket(scope: Scope, name: str, wanted: Mapping[str, Any]) -> Row:
    """Change a bucket's switches.

    Raises BucketNotFound, InvalidRequest.
    """
    row = bucket(scope, name)
    changed: Row = client.call(
        "PATCH", f"/v1/buckets/{row['id']}", query=tenant(scope), body=wanted
    )
    return changed | {"origin": row["origin"]}


def delete_bucket(scope: Scope, name: str) -> None:
    """Delete an empty bucket.

    Raises BucketNotFound, BucketNotEmpty.
    """
    row = bucket(scope, name)
    client.call("DELETE", f"/v1/buckets/{row['id']}", query=tenant(scope))


def access_keys(scope: Scope) -> list[Row]:
    """List the environment's access keys, without their secrets."""
    return _listed(scope, "access-keys")


def create_access_key(scope: Scope, wanted: Mapping[str, Any]) -> Row:
    """Make a key; ``secret_access_key`` is told this once.

    Raises CacheLimitReached.
    """
    made: Row = client.call("POST", "/v1/access-keys", query=tenant(scope), body=wanted)
    return made


def revoke_access_key(scope: Scope, key_id: str) -> None:
    """Revoke a key, at once on every brain.

    Raises AccessKeyNotFound.
    """
    if not KEY_ID.fullmatch(key_id):
        raise AccessKeyNotFound
    client.call("DELETE", f"/v1/access-keys/{key_id}", query=tenant(scope))


def origins(scope: Scope) -> list[Row]:
    """List the environment's origins, without their secrets."""
    return _listed(scope, "origins")


def create_origin(scope: Scope, wanted: Mapping[str, Any]) -> Row:
    """Name an origin.

    Raises InvalidRequest.
    """
    made: Row = client.call("POST", "/v1/origins", query=tenant(scope), body=wanted)
    return made


def delete_origin(scope: Scope, name: str) -> None:
    """Remove an origin.

    Raises OriginNotFound, OriginInUse.
    """
    row = _origin(scope, name)
    client.call("DELETE", f"/v1/origins/{row['id']}", query=tenant(scope))


def purge(scope: Scope, wanted: Mapping[str, Any]) -> dict[str, int]:
    """Take objects out of the cache, seen by every brain when it returns.

    wanted: ``keys`` (each ``bucket/key``), ``prefix`` (``bucket/…``), ``all``, ``preview``; keys
    and prefix together hit the union. Returns exact counts.
    """
    answer: dict[str, int] = client.call(
        "POST", "/v1/purge", body={**tenant(scope), **wanted}, disabled=NOTHING_PURGED
    )
    return answer


def warm(scope: Scope, keys: list[str]) -> dict[str, int]:
    """Fetch objects into the cache before anyone asks for them; counts ``warmed``, ``failed``."""
    answer: dict[str, Any] = client.call(
        "POST",
        "/v1/warm",
        body={**tenant(scope), "keys": keys},
        disabled={"warmed": 0, "failed": []},
    )
    return {"warmed": answer["warmed"], "failed": len(answer["failed"])}


def close(scope: Scope) -> None:
    """Revoke every access key and make every bucket private; twice does no harm."""
    for key in access_keys(scope):
        with contextlib.suppress(AccessKeyNotFound):
            revoke_access_key(scope, key["access_key_id"])
    for row in buckets(scope):
        with contextlib.suppress(BucketNotFound):
            change_bucket(scope, row["name"], {"is_public": False})


def drop_environment(organization_id: int, environment_pk: int) -> None:
    """Drop everything of an environment that is gone; twice does no harm."""
    client.call("DELETE", f"/v1/environments/{organization_id}/{environment_pk}")


def tenant(scope: Scope) -> dict[str, int]:
    """Say to the brain where a call acts."""
    return {"organization_id": scope.organization_id, "environment_pk": scope.environment_pk}


def _listed(scope: Scope, kind: str) -> list[Row]:
    name = kind.replace("-", "_")
    answer = client.call("GET", f"/v1/{kind}", query=tenant(scope), disabled={name: []})
    rows: list[Row] = answer[name]
    return rows


def _origin(scope: Scope, name: str) -> Row:
    for row in origins(scope):
        if row["name"] == name:
            return row
    raise OriginNotFound


def _origin_names(scope: Scope) -> dict[int, str]:
    return {row["id"]: row["name"] for row in origins(scope)}
