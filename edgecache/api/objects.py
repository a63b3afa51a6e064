"""Objects of an environment: purged from the cache, or fetched into it ahead of time."""

from collections.abc import Mapping
from typing import Any, Final

from common.principals import Scope
from edgecache.api import client
from edgecache.api.client import tenant

NOTHING_PURGED: Final = {"objects_purged": 0, "bytes_freed": 0, "nodes_affected": 0}


def purge(scope: Scope, body: Mapping[str, Any]) -> dict[str, int]:
    """Remove objects from the cache; every brain sees it when this returns.

    body: ``keys`` (each ``bucket/key``), ``prefix`` (``bucket/…``), ``all``, ``preview``; given
    both keys and a prefix, their union is purged. Returns exact counts.
    """
    counts: dict[str, int] = client.call(
        "POST", "/v1/purge", body={**tenant(scope), **body}, disabled=NOTHING_PURGED
    )
    return counts


def warm(scope: Scope, keys: list[str]) -> dict[str, int]:
    """Fetch objects into the cache before anyone reads them; return ``warmed`` and ``failed``."""
    answer: dict[str, Any] = client.call(
        "POST",
        "/v1/warm",
        body={**tenant(scope), "keys": keys},
        disabled={"warmed": 0, "failed": []},
    )
    return {"warmed": answer["warmed"], "failed": len(answer["failed"])}
