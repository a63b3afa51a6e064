"""``POST /v1/purge`` and ``POST /v1/warm``: empty or fill the cache."""

import asyncio
from typing import Annotated, Final
from urllib.parse import quote

from msgspec import Meta

from edgecache.brain.core.errors import BrainError, Invalid, NoSuchBucket
from edgecache.brain.core.values import EnvironmentKey
from edgecache.brain.directory.pasted_names import PastedName, PastedNames
from edgecache.brain.http_caching.cache_keys import SAFE, Target, target_of
from edgecache.brain.internal_api.bodies import TenantMessage, charged_tenant
from edgecache.brain.internal_api.dependencies import InternalApiDependencies
from edgecache.brain.json_api.app import JsonCall, JsonResponse, Route
from edgecache.protocol.fields import NO_NUL, FieldError
from edgecache.protocol.names import PASTED_CHARS

BODY_LIMIT_BYTES: Final = 8 * 2**20
CONCURRENT_WARMINGS: Final = 8

PastedText = Annotated[str, Meta(max_length=PASTED_CHARS, pattern=NO_NUL)]


class PurgeRequest(TenantMessage, frozen=True, kw_only=True):
    """What to purge: ``bucket/key``, or URLs; tags: each ``bucket/tag``."""

    keys: list[PastedText] = []
    prefix: PastedText = ""
    tags: list[PastedText] = []
    all: bool = False
    preview: bool = False


class WarmRequest(TenantMessage, frozen=True, kw_only=True):
    """What to fetch: ``bucket/key``, or URLs."""

    keys: list[PastedText]


def routes(dependencies: InternalApiDependencies) -> list[Route]:
    async def purge(call: JsonCall) -> JsonResponse:
        body = call.read(PurgeRequest)
        keys = [key for key in body.keys if key]
        if not (keys or body.prefix or body.tags or body.all):
            sentence = "give keys, a prefix, tags, or all: true"
            raise Invalid([FieldError("keys", sentence, "required")])
        found = await dependencies.purges.purge(
            charged_tenant(body),
            keys=keys,
            prefix=body.prefix,
            tags=body.tags,
            everything=body.all,
            preview=body.preview,
        )
        return JsonResponse(found)

    async def warm(call: JsonCall) -> JsonResponse:
        body = call.read(WarmRequest)
        tenant, keys = charged_tenant(body), body.keys
        domains = dependencies.settings.s3_domains
        named = await PastedNames.of(dependencies.database, tenant, domains)
        _check_spelling(named, keys)
        turns = asyncio.Semaphore(CONCURRENT_WARMINGS)
        warming = (_warm(dependencies, tenant, named, key, turns) for key in keys)
        codes = await asyncio.gather(*warming)
        failed = [{"key": key, "code": code} for key, code in zip(keys, codes, strict=True) if code]
        return JsonResponse({"warmed": len(keys) - len(failed), "failed": failed})

    return [
        Route("POST", "/v1/purge", purge, body_limit_bytes=BODY_LIMIT_BYTES, timeout_s=300),
        Route("POST", "/v1/warm", warm, body_limit_bytes=BODY_LIMIT_BYTES, timeout_s=300),
    ]


def _check_spelling(named: PastedNames, keys: list[str]) -> None:
    """Raise Invalid for texts that can name nothing. Unknown buckets are reported key by key."""
    errors: list[FieldError] = []
    for key in keys:
        try:
            named.read([key])
        except Invalid as invalid:
            errors += invalid.errors
        except NoSuchBucket:
            continue
    if errors:
        raise Invalid(errors)


async def _warm(
    dependencies: InternalApiDependencies,
    tenant: EnvironmentKey,
    named: PastedNames,
    key: str,
    turns: asyncio.Semaphore,
) -> str:
    """Fetch an object into the cache; return an error code, "" on success."""
    async with turns:
        try:
            (name,), _, _ = named.read([key])
            bucket = await dependencies.directory.bucket(tenant, name.bucket.name)
            if bucket is None:
                return "no_such_bucket"
            if bucket.is_public and name.bucket.is_http:
                return await dependencies.warm(bucket, _target(name))
            opened = await dependencies.objects.open(bucket, name.key)
            await opened.whole()
        except Invalid:
            return "invalid"
        except BrainError as error:
            return error.code
    return ""


def _target(name: PastedName) -> Target:
    """Return the URL that a name means."""
    key, query = name.key, name.query or ""
    if not name.path:
        key, _, query = key.partition("?")
    return target_of(key, name.path or quote(key, safe=SAFE), query)
