"""``/v1/origins``: where buckets' objects come from. Secrets go in and never come out."""

from typing import Any
from uuid import UUID

from msgspec import UNSET

from edgecache.brain.core.creator import Creator
from edgecache.brain.core.errors import Invalid
from edgecache.brain.internal_api.bodies import tenant_of
from edgecache.brain.internal_api.buckets import number
from edgecache.brain.json_api.app import JsonCall, JsonResponse, Route
from edgecache.brain.origins.catalog import Catalog
from edgecache.protocol.fields import FieldError, Text, read
from edgecache.protocol.names import parse_label
from edgecache.protocol.resources import OriginOptions


class OriginRequest(OriginOptions, frozen=True, kw_only=True):
    """An origin to create. ``origins.config`` checks its kind, configuration and secret."""

    name: Text
    kind: Text
    config: dict[str, Any] = {}
    secret: dict[str, Any] = {}
    created_by: Text = ""
    creator_id: UUID | None = None


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
            tenant,
            body.name,
            body.kind,
            body.config,
            body.secret or None,
            options=body,
            creator=Creator(body.created_by, body.creator_id),
        )
        return JsonResponse(row, 201)

    async def change(call: JsonCall) -> JsonResponse:
        tenant = tenant_of(call.query)
        given = call.read(dict[str, Any])
        expected = given.pop("expected", None)
        secret: Any = UNSET
        if "secret" in given:
            secret = read(given.pop("secret"), dict[str, Any]) or None
        read(given, OriginOptions)
        row = await catalog.change(
            tenant,
            number(call),
            given,
            secret,
            expected=None if expected is None else read(expected, OriginOptions),
        )
        return JsonResponse(row)

    async def delete(call: JsonCall) -> JsonResponse:
        await catalog.delete(tenant_of(call.query), number(call))
        return JsonResponse(status=204)

    return [
        Route("GET", "/v1/origins", listing),
        Route("POST", "/v1/origins", create),
        Route("PATCH", "/v1/origins/{id}", change),
        Route("DELETE", "/v1/origins/{id}", delete),
    ]
