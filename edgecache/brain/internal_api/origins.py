"""``/v1/origins``: where buckets' objects come from. Secrets go in and never come out."""

from typing import Any

from edgecache.brain.core.creator import CreatorMessage
from edgecache.brain.core.errors import Invalid
from edgecache.brain.internal_api.bodies import tenant_of
from edgecache.brain.internal_api.buckets import number
from edgecache.brain.json_api.app import JsonCall, JsonResponse, Route
from edgecache.brain.origins.catalog import Catalog
from edgecache.protocol.fields import FieldError, Message, Text
from edgecache.protocol.names import parse_label


class OriginRequest(CreatorMessage, frozen=True, kw_only=True):
    """An origin to create. ``origins.config`` checks its kind, configuration and secret."""

    name: Text
    kind: Text
    config: dict[str, Any] = {}
    secret: dict[str, Any] = {}


class OriginChange(Message, frozen=True):
    """New credentials; none is anonymous access."""

    secret: dict[str, Any] = {}


def routes(catalog: Catalog) -> list[Route]:
    async def listing(call: JsonCall) -> JsonResponse:
        rows = await catalog.list(tenant_of(call.query))
        return JsonResponse({"origins": rows})

    async def create(call: JsonCall) -> JsonResponse:
        tenant = tenant_of(call.query)
        body = call.read(OriginRequest)
        if parse_label(body.name) is None:
            raise Invalid([FieldError("name", "must be of a-z, 0-9 and hyphens")])
        row = await catalog.create(
            tenant, body.name, body.kind, body.config, body.secret or None, creator=body.creator
        )
        return JsonResponse(row, 201)

    async def change_secret(call: JsonCall) -> JsonResponse:
        tenant = tenant_of(call.query)
        secret = call.read(OriginChange).secret
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
