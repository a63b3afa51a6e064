"""What an environment has in the cache: buckets, access keys, origins; and emptying it.

Every call names the caller's own organization and environment, so a foreign id is a 404.
"""

import contextlib
import re
from collections.abc import Mapping
from typing import Any, Final

from edgecache import client
from edgecache.errors import AccessKeyNotFound, BucketNotFound, OriginNotFound
from platform_site.lib.errors import NotFound
from platform_site.lib.principals import Scope

ABSENT: Final[Mapping[str, type[NotFound]]] = {
    "buckets": BucketNotFound,
    "access-keys": AccessKeyNotFound,
    "origins": OriginNotFound,
}
# Of buckets, keys and origins alike; what is none (dots alone, a slash) is no part of a path.
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")

EMPTY: Final[dict[str, list[Any]]] = {"results": []}
NOTHING_PURGED: Final = {"objects_purged": 0, "bytes_freed": 0, "nodes_affected": 0}


def tenant(scope: Scope) -> dict[str, int]:
    """Say to the brain where a call acts."""
    return {"organization_id": scope.organization_id, "environment_pk": scope.environment_pk}


def listed(scope: Scope, kind: str) -> list[dict[str, Any]]:
    """List the environment's ``buckets``, ``access-keys`` or ``origins``."""
    answer = client.call("GET", f"/v1/{kind}", query=tenant(scope), disabled=EMPTY)
    rows: list[dict[str, Any]] = answer["results"]
    return rows


def made(
    scope: Scope, kind: str, wanted: Mapping[str, Any], *, disabled: Mapping[str, Any]
) -> dict[str, Any]:
    """Add one; the answer carries what is told only once.

    Raises InvalidRequest, or that its name is taken.
    """
    row: dict[str, Any] = client.call(
        "POST", f"/v1/{kind}", query=tenant(scope), body=wanted, disabled=dict(disabled)
    )
    return row


def one(scope: Scope, kind: str, name: str, *, disabled: Mapping[str, Any]) -> dict[str, Any]:
    """Give one by its id or name.

    Raises the kind's NotFound.
    """
    row: dict[str, Any] = client.call(
        "GET", _path(kind, name), query=tenant(scope), disabled=dict(disabled)
    )
    return row


def changed(
    scope: Scope,
    kind: str,
    name: str,
    wanted: Mapping[str, Any],
    *,
    disabled: Mapping[str, Any],
) -> dict[str, Any]:
    """Change one.

    Raises the kind's NotFound and InvalidRequest.
    """
    row: dict[str, Any] = client.call(
        "PATCH", _path(kind, name), query=tenant(scope), body=wanted, disabled=dict(disabled)
    )
    return row


def removed(scope: Scope, kind: str, name: str) -> None:
    """Remove one.

    Raises the kind's NotFound, or that it is still used.
    """
    client.call("DELETE", _path(kind, name), query=tenant(scope))


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
    answer: dict[str, int] = client.call(
        "POST",
        "/v1/warm",
        body={**tenant(scope), "keys": keys},
        disabled={"warmed": 0, "failed": 0},
    )
    return answer


def close(scope: Scope) -> None:
    """Revoke every access key and make every bucket private; twice does no harm."""
    for key in listed(scope, "access-keys"):
        with contextlib.suppress(AccessKeyNotFound):
            removed(scope, "access-keys", key["id"])
    for bucket in listed(scope, "buckets"):
        with contextlib.suppress(BucketNotFound):
            changed(scope, "buckets", bucket["name"], {"is_public": False}, disabled={})


def drop_environment(organization_id: int, environment_pk: int) -> None:
    """Drop everything of an environment that is gone; twice does no harm."""
    client.call("DELETE", f"/v1/environments/{organization_id}/{environment_pk}")


def _path(kind: str, name: str) -> str:
    if not NAME.fullmatch(name):
        raise ABSENT[kind]
    return f"/v1/{kind}/{name}"
