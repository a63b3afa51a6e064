"""The internal API (:8081): for the platform alone, authenticated by the shared secret."""

import hashlib
import hmac
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from edgecache.brain.internal_api import (
    access_keys,
    all_tenants,
    buckets,
    hosts,
    metrics,
    nodes,
    objects,
    organizations,
    origins,
    purges,
)
from edgecache.brain.internal_api.dependencies import InternalApiDependencies
from edgecache.brain.json_api.app import JsonApi, JsonCall, Route, health_route
from edgecache.brain.json_api.errors import NotAuthenticated

# The platform's names for errors that have S3's names in the brain.
CODES: Final = {
    "no_such_bucket": "bucket_not_found",
    "bucket_exists": "bucket_taken",
    "no_such_origin": "origin_not_found",
    "origin_exists": "origin_taken",
    "in_use": "origin_in_use",
    "no_such_key": "object_not_found",
}


def internal_api(dependencies: InternalApiDependencies) -> JsonApi:
    return JsonApi(_routes(dependencies), _authentication(dependencies), codes=CODES)


def metrics_api(dependencies: InternalApiDependencies) -> JsonApi:
    """Return what a brain answers on a port of its own, where others have the same ports."""
    routes = [
        health_route(dependencies.readiness, dependencies.brain_id),
        metrics.scrape_route(dependencies),
    ]
    return JsonApi(routes, _authentication(dependencies))


def _authentication(
    dependencies: InternalApiDependencies,
) -> Callable[[JsonCall], Awaitable[None]]:
    accepted = [_digest(secret) for secret in dependencies.settings.secrets]

    async def authenticate(call: JsonCall) -> None:
        scheme, _, given = call.headers.get("authorization", "").partition(" ")
        # Digests have one length, so the comparison's time does not depend on the secret's.
        digest = _digest(given.strip())
        matches = [hmac.compare_digest(digest, wanted) for wanted in accepted]
        if scheme.lower() != "bearer" or not any(matches):
            raise NotAuthenticated

    return authenticate


def _routes(dependencies: InternalApiDependencies) -> Iterator[Route]:
    yield health_route(dependencies.readiness, dependencies.brain_id)
    yield from nodes.NodesApi(dependencies).routes()
    yield from metrics.routes(dependencies)
    if not dependencies.settings.metrics_port:
        yield metrics.scrape_route(dependencies)
    yield from purges.routes(dependencies)
    yield from buckets.routes(dependencies.buckets, dependencies.repair, dependencies.meters)
    yield from objects.ObjectsApi(dependencies).routes()
    yield from access_keys.routes(dependencies.database, dependencies.coherence)
    yield from origins.routes(dependencies.catalog)
    yield from hosts.routes(dependencies.hosts)
    yield from organizations.routes(dependencies)
    yield from all_tenants.routes(dependencies.database)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="replace")).digest()
