"""The internal API (:8081): the platform alone speaks it, with the secret both know."""

import hashlib
import hmac
from typing import TYPE_CHECKING, Final

from edgecache.brain.internal_api import (
    access_keys,
    buckets,
    environments,
    everyone,
    health,
    hosts,
    metrics,
    nodes,
    origins,
    purges,
)
from edgecache.brain.json_api import Call, JsonApi
from edgecache.brain.refusals import NotAuthenticated

if TYPE_CHECKING:
    from edgecache.brain.app import Brain

# S3's words are for S3's clients.
CODES: Final = {
    "no_such_bucket": "bucket_not_found",
    "bucket_exists": "bucket_taken",
    "no_such_origin": "origin_not_found",
    "origin_exists": "origin_taken",
    "in_use": "origin_in_use",
}


def internal_api(brain: "Brain") -> JsonApi:
    """Give the RSGI application."""
    secrets = (brain.settings.secret, *brain.settings.previous_secrets)
    accepted = [_digest(secret) for secret in secrets]

    async def authenticate(call: Call) -> None:
        scheme, _, given = call.headers.get("authorization", "").partition(" ")
        # Digests have one length: how long the given one is tells nothing.
        digest = _digest(given.strip())
        matches = [hmac.compare_digest(digest, wanted) for wanted in accepted]
        if scheme.lower() != "bearer" or not any(matches):
            raise NotAuthenticated

    modules = (
        *(health, nodes, metrics, purges, buckets, access_keys, origins, environments),
        *(hosts, everyone),
    )
    routes = [route for module in modules for route in module.routes(brain)]
    return JsonApi(routes, authenticate, codes=CODES)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="replace")).digest()
