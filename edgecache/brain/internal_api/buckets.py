"""``/v1/buckets``: names for objects, of one environment each."""

from typing import Any, TypeVar

from msgspec.structs import asdict, replace

from edgecache.brain.core.errors import Invalid, KeyRefused, NoSuchBucket
from edgecache.brain.core.values import BucketInfo, check_key, is_bucket_name
from edgecache.brain.directory.buckets import Buckets
from edgecache.brain.http_caching.cache_keys import EVERYTHING, is_forwardable
from edgecache.brain.internal_api.bodies import tenant_of
from edgecache.brain.json_api.app import JsonCall, JsonResponse, Route
from edgecache.brain.metering.meters import Meters
from edgecache.brain.nodes.repair import Repair
from edgecache.protocol.fields import FieldError, read
from edgecache.protocol.names import BUCKET_RULE
from edgecache.protocol.resources import BucketOptions

Options = TypeVar("Options", bound=BucketOptions)


class BucketRequest(BucketOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A bucket to create."""

    name: str
    origin_id: int | None = None
    origin_prefix: str = ""


def routes(buckets: Buckets, repair: Repair, meters: Meters) -> list[Route]:
    async def listing(call: JsonCall) -> JsonResponse:
        rows = await buckets.list(tenant_of(call.query))
        return JsonResponse({"buckets": [shape(row) for row in rows]})

    async def create(call: JsonCall) -> JsonResponse:
        tenant = tenant_of(call.query)
        body = call.read(BucketRequest)
        if not is_bucket_name(body.name):
            raise Invalid([FieldError("name", BUCKET_RULE)])
        row = await buckets.create(
            tenant,
            body.name,
            origin_id=body.origin_id,
            origin_prefix=body.origin_prefix,
            options=_checked(body),
        )
        return JsonResponse(shape(row), 201)

    async def one(call: JsonCall) -> JsonResponse:
        name = call.captures["name"]
        if not is_bucket_name(name):
            raise NoSuchBucket
        return JsonResponse(shape(await buckets.one(tenant_of(call.query), name)))

    async def failures(call: JsonCall) -> JsonResponse:
        name = call.captures["name"]
        if not is_bucket_name(name):
            raise NoSuchBucket
        bucket = await buckets.one(tenant_of(call.query), name)
        return JsonResponse({"failures": await meters.failures(bucket.id)})

    return [
        Route("GET", "/v1/buckets", listing),
        Route("POST", "/v1/buckets", create),
        Route("GET", "/v1/buckets/{name}", one),
        Route("GET", "/v1/buckets/{name}/failures", failures),
        *_changes(buckets, repair),
    ]


def _changes(buckets: Buckets, repair: Repair) -> list[Route]:
    async def change(call: JsonCall) -> JsonResponse:
        tenant, bucket_id = tenant_of(call.query), number(call)
        given = call.read(dict[str, Any])
        expected = given.pop("expected", None)
        options = _checked(read(given, BucketOptions))
        row = await buckets.change(
            tenant,
            bucket_id,
            {name: getattr(options, name) for name in given},
            expected=None if expected is None else read(expected, BucketOptions),
        )
        if "is_public" in given:
            # Objects that became private leave other organizations' nodes.
            await repair.request_walk()
        return JsonResponse(shape(row))

    async def delete(call: JsonCall) -> JsonResponse:
        await buckets.delete(tenant_of(call.query), number(call))
        return JsonResponse(status=204)

    async def revoke_links(call: JsonCall) -> JsonResponse:
        await buckets.revoke_links(tenant_of(call.query), number(call))
        return JsonResponse(status=204)

    return [
        Route("PATCH", "/v1/buckets/{id}", change),
        Route("DELETE", "/v1/buckets/{id}", delete),
        Route("DELETE", "/v1/buckets/{id}/signed-links", revoke_links),
    ]


def shape(row: BucketInfo) -> dict[str, Any]:
    """Return a bucket as JSON."""
    shown = {**asdict(row), **row.tenant._asdict()}
    del shown["tenant"], shown["lifecycle"]
    return shown


def number(call: JsonCall) -> int:
    """Return the row's id in the path. Raises NoSuchBucket for a malformed one."""
    text = call.captures["id"]
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise NoSuchBucket
    return int(text)


def _checked(options: Options) -> Options:
    """Return options with the names of headers in lower case, each once."""
    names = sorted({name.lower() for name in options.forwarded_headers})
    refused = [name for name in names if name != EVERYTHING and not is_forwardable(name)]
    if refused:
        sentence = "{!r} is no header that can be forwarded"
        raise Invalid([FieldError("forwarded_headers", sentence.format(each)) for each in refused])
    if options.log_prefix:
        try:
            check_key(options.log_prefix)
        except KeyRefused:
            raise Invalid([FieldError("log_prefix", "no key can begin with it")]) from None
    return replace(options, forwarded_headers=tuple(names))
