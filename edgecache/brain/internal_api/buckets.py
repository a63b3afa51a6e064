"""``/v1/buckets``: names for objects, of one environment each."""

from typing import Any, Final

from edgecache.brain.core.errors import NoSuchBucket
from edgecache.brain.core.values import BucketInfo, is_bucket_name
from edgecache.brain.directory.buckets import BucketOptions, Buckets
from edgecache.brain.http_caching.cache_keys import EVERYTHING, is_forwardable
from edgecache.brain.internal_api.bodies import tenant_of
from edgecache.brain.json_api.app import JsonCall, JsonResponse, Route
from edgecache.brain.nodes.repair import Repair
from edgecache.protocol.fields import FieldReader
from edgecache.protocol.names import BUCKET_RULE

NAME_CHARS: Final = 63
PREFIX_CHARS: Final = 1024
HEADERS: Final = "forwarded_headers"
HEADERS_LIMIT: Final = 20
HEADER_CHARS: Final = 64


def routes(buckets: Buckets, repair: Repair) -> list[Route]:
    async def listing(call: JsonCall) -> JsonResponse:
        rows = await buckets.list(tenant_of(call.query))
        return JsonResponse({"buckets": [shape(row) for row in rows]})

    async def create(call: JsonCall) -> JsonResponse:
        tenant = tenant_of(call.query)
        body = FieldReader(call.body)
        name = body.text("name", limit=NAME_CHARS)
        origin_id = body.integer("origin_id", minimum=1) if body.is_given("origin_id") else None
        prefix = body.text("origin_prefix", limit=PREFIX_CHARS, default="")
        options = _options(body)
        if name and not is_bucket_name(name):
            body.wrong("name", BUCKET_RULE, None)
        body.finish()
        row = await buckets.create(
            tenant, name, origin_id=origin_id, origin_prefix=prefix, options=options
        )
        return JsonResponse(shape(row), 201)

    async def one(call: JsonCall) -> JsonResponse:
        tenant, bucket_id = tenant_of(call.query), number(call)
        rows = await buckets.list(tenant)
        row = next((row for row in rows if row.id == bucket_id), None)
        if row is None:
            raise NoSuchBucket
        return JsonResponse(shape(row))

    return [
        Route("GET", "/v1/buckets", listing),
        Route("POST", "/v1/buckets", create),
        Route("GET", "/v1/buckets/{id}", one),
        *_changes(buckets, repair),
    ]


def _changes(buckets: Buckets, repair: Repair) -> list[Route]:
    async def change(call: JsonCall) -> JsonResponse:
        tenant, bucket_id = tenant_of(call.query), number(call)
        body = FieldReader(call.body)
        options = _options(body)
        expected = _options(FieldReader(body.mapping("expected")))
        body.finish()
        row = await buckets.change(tenant, bucket_id, options, expected=expected)
        if options.is_public is not None:
            # Objects that became private leave other organizations' nodes.
            await repair.request_walk()
        return JsonResponse(shape(row))

    async def delete(call: JsonCall) -> JsonResponse:
        await buckets.delete(tenant_of(call.query), number(call))
        return JsonResponse(status=204)

    return [
        Route("PATCH", "/v1/buckets/{id}", change),
        Route("DELETE", "/v1/buckets/{id}", delete),
    ]


def shape(row: BucketInfo) -> dict[str, Any]:
    """Return a bucket as JSON."""
    shown = {name: getattr(row, name) for name in BucketInfo.__slots__ if name != "tenant"}
    return shown | {
        "forwarded_headers": [name for name in row.forwarded_headers.split(",") if name]
    }


def number(call: JsonCall) -> int:
    """Return the row's id in the path. Raises NoSuchBucket for a malformed one."""
    text = call.captures["id"]
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise NoSuchBucket
    return int(text)


def _options(body: FieldReader) -> BucketOptions:
    names = (name for name in BucketOptions.__slots__ if name != HEADERS and body.is_given(name))
    return BucketOptions(
        **{name: body.boolean(name) for name in names},
        forwarded_headers=_forwarded_headers(body),
    )


def _forwarded_headers(body: FieldReader) -> str | None:
    if not body.is_given(HEADERS):
        return None
    names = {name.lower() for name in body.texts(HEADERS, limit=HEADERS_LIMIT, length=HEADER_CHARS)}
    for name in sorted(names):
        if name != EVERYTHING and not is_forwardable(name):
            body.wrong(HEADERS, f"{name!r} is no header that can be forwarded", None)
    return ",".join(sorted(names))
