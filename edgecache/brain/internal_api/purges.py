"""``POST /v1/purge`` and ``POST /v1/warm``: empty or fill the cache."""

import asyncio
from typing import Final

from edgecache.brain.core.errors import BrainError, Invalid
from edgecache.brain.core.values import EnvironmentKey
from edgecache.brain.internal_api.bodies import TenantMessage, charged_tenant
from edgecache.brain.internal_api.dependencies import InternalApiDependencies
from edgecache.brain.json_api.app import JsonCall, JsonResponse, Route
from edgecache.protocol.fields import FieldError, Text

BODY_LIMIT_BYTES: Final = 8 * 2**20
CONCURRENT_WARMINGS: Final = 8


class PurgeRequest(TenantMessage, frozen=True, kw_only=True):
    """What to purge; keys and prefix begin with the bucket."""

    keys: list[Text] = []
    prefix: Text = ""
    all: bool = False
    preview: bool = False


class WarmRequest(TenantMessage, frozen=True, kw_only=True):
    """What to fetch; keys begin with the bucket."""

    keys: list[Text]


def routes(dependencies: InternalApiDependencies) -> list[Route]:
    async def purge(call: JsonCall) -> JsonResponse:
        body = call.read(PurgeRequest)
        keys = [key for key in body.keys if key]
        if not (keys or body.prefix or body.all):
            raise Invalid([FieldError("keys", "give keys, a prefix, or all: true", "required")])
        found = await dependencies.purges.purge(
            charged_tenant(body),
            keys=keys,
            prefix=body.prefix,
            everything=body.all,
            preview=body.preview,
        )
        return JsonResponse(found)

    async def warm(call: JsonCall) -> JsonResponse:
        body = call.read(WarmRequest)
        tenant, keys = charged_tenant(body), body.keys
        turns = asyncio.Semaphore(CONCURRENT_WARMINGS)
        codes = await asyncio.gather(*(_warm(dependencies, tenant, key, turns) for key in keys))
        failed = [{"key": key, "code": code} for key, code in zip(keys, codes, strict=True) if code]
        return JsonResponse({"warmed": len(keys) - len(failed), "failed": failed})

    return [
        Route("POST", "/v1/purge", purge, body_limit_bytes=BODY_LIMIT_BYTES, timeout_s=300),
        Route("POST", "/v1/warm", warm, body_limit_bytes=BODY_LIMIT_BYTES, timeout_s=300),
    ]


async def _warm(
    dependencies: InternalApiDependencies,
    tenant: EnvironmentKey,
    name: str,
    turns: asyncio.Semaphore,
) -> str:
    """Fetch an object into the cache; return an error code, "" on success."""
    bucket_name, _, key = name.partition("/")
    async with turns:
        try:
            bucket = await dependencies.directory.bucket(tenant, bucket_name)
            if bucket is None:
                return "no_such_bucket"
            opened = await dependencies.objects.open(bucket, key)
            await opened.whole()
        except Invalid:
            return "invalid"
        except BrainError as error:
            return error.code
    return ""
