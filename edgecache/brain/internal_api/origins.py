"""``/v1/origins``: where buckets' objects come from. Secrets go in and never come out."""

from typing import Final

from edgecache.brain.core.creator import take_creator
from edgecache.brain.internal_api.bodies import tenant_of
from edgecache.brain.internal_api.buckets import number
from edgecache.brain.json_api.app import JsonCall, JsonResponse, Route
from edgecache.brain.origins.catalog import Catalog
from edgecache.protocol.fields import FieldReader
from edgecache.protocol.names import parse_label

KIND_CHARS: Final = 16


def routes(catalog: Catalog) -> list[Route]:
    async def listing(call: JsonCall) -> JsonResponse:
        rows = await catalog.list(tenant_of(call.query))
        return JsonResponse({"origins": rows})

    async def create(call: JsonCall) -> JsonResponse:
        tenant = tenant_of(call.query)
        body = FieldReader(call.body)
        name = body.converted("name", parse_label, "must be of a-z, 0-9 and hyphens", "")
        kind = body.text("kind", limit=KIND_CHARS)
        config, secret = body.mapping("config"), body.mapping("secret")
        creator = take_creator(body)
        body.finish()
        row = await catalog.create(tenant, name, kind, config, secret or None, creator=creator)
        return JsonResponse(row, 201)

    async def change_secret(call: JsonCall) -> JsonResponse:
        tenant = tenant_of(call.query)
        body = FieldReader(call.body)
        secret = body.mapping("secret")
        body.finish()
        return JsonResponse(await catalog.change_secret(tenant, number(call), secret or None))

    async def delete(call: JsonCall) -> JsonResponse:
        await catalog.delete(tenant_of(call.query), number(call))
        return JsonResponse(status=204)

    return [
        Route("GET", "/v1/origins", listing),
        Route("POST", "/v1/origins", create),
        Route("PATCH", "/v1/origins/{id}", change_secret),
        Route("DELETE", "/v1/origins/{id}", delete),
    ]
