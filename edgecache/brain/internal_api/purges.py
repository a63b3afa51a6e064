"""``POST /v1/purge`` and ``POST /v1/warm``: empty or fill the cache."""

import asyncio
from typing import Final

from edgecache.brain.core.errors import BrainError, Invalid
from edgecache.brain.core.values import EnvironmentKey
from edgecache.brain.internal_api.bodies import take_tenant
from edgecache.brain.internal_api.dependencies import InternalApiDependencies
from edgecache.brain.json_api.app import JsonCall, JsonResponse, Route
from edgecache.protocol.fields import FieldReader
from edgecache.protocol.names import OBJECT_NAME_CHARS

BODY_LIMIT_BYTES: Final = 8 * 2**20
KEYS: Final = 10_000
WARM_KEYS: Final = 1000
CONCURRENT_WARMINGS: Final = 8


def routes(dependencies: InternalApiDependencies) -> list[Route]:
    async def purge(call: JsonCall) -> JsonResponse:
        body = FieldReader(call.body)
        tenant = take_tenant(body)
        keys = [key for key in body.texts("keys", limit=KEYS, length=OBJECT_NAME_CHARS) if key]
        prefix = body.text("prefix", limit=OBJECT_NAME_CHARS, default="")
        everything = body.boolean("all", default=False)
        preview = body.boolean("preview", default=False)
        if not (keys or prefix or everything):
            body.wrong("keys", "give keys, a prefix, or all: true", None, code="required")
        body.finish()
        found = await dependencies.purges.purge(
            tenant, keys=keys, prefix=prefix, everything=everything, preview=preview
        )
        return JsonResponse(found)

    async def warm(call: JsonCall) -> JsonResponse:
        body = FieldReader(call.body)
        tenant = take_tenant(body)
        keys = body.texts("keys", limit=WARM_KEYS, length=OBJECT_NAME_CHARS)
        body.finish()
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
