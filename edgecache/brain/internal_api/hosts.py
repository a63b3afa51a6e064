"""``/v1/buckets/{id}/hosts``: host names under which a bucket answers plain HTTP.

The platform reads the DNS; the brain stores the result. At ``/v1/everyone/hosts`` the platform gets
the hosts that are due for a check, and sends what it found.
"""

from dataclasses import asdict
from typing import Annotated

from msgspec import Meta

from edgecache.brain.core.errors import Invalid
from edgecache.brain.directory.hosts import Hosts
from edgecache.brain.internal_api.bodies import tenant_of
from edgecache.brain.internal_api.buckets import number
from edgecache.brain.json_api.app import JsonCall, JsonResponse, Route
from edgecache.protocol.fields import FieldError, Message, Text


class HostProof(Message, frozen=True):
    """A host whose DNS has the token. seen: all tokens there."""

    host: Text
    token: Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
    seen: list[Text] = []


class CheckedHosts(Message, frozen=True):
    """Tokens of hosts by what the DNS answered."""

    there: list[Text] = []
    gone: list[Text] = []
    unanswered: list[Text] = []


def routes(hosts: Hosts) -> list[Route]:
    async def listing(call: JsonCall) -> JsonResponse:
        rows = await hosts.of(tenant_of(call.query), number(call))
        return JsonResponse({"hosts": rows})

    async def prove(call: JsonCall) -> JsonResponse:
        tenant, bucket_id = tenant_of(call.query), number(call)
        body = call.read(HostProof)
        if not hosts.can_be_bucket_host(body.host):
            raise Invalid([FieldError("host", "must be a domain of your own, in lower case")])
        row, other = await hosts.prove(
            tenant, bucket_id, body.host, token=body.token, seen=body.seen
        )
        return JsonResponse(asdict(row) | {"lapsed": [other] if other else []}, 201)

    async def remove(call: JsonCall) -> JsonResponse:
        await hosts.remove(tenant_of(call.query), number(call), call.captures["host"])
        return JsonResponse(status=204)

    return [
        Route("GET", "/v1/buckets/{id}/hosts", listing),
        Route("POST", "/v1/buckets/{id}/hosts", prove),
        Route("DELETE", "/v1/buckets/{id}/hosts/{host}", remove),
        *_again(hosts),
    ]


def _again(hosts: Hosts) -> list[Route]:
    async def due(_call: JsonCall) -> JsonResponse:
        rows = await hosts.due()
        return JsonResponse({"hosts": [{"host": host, "token": token} for host, token in rows]})

    async def record_check(call: JsonCall) -> JsonResponse:
        found = call.read(CheckedHosts)
        rows = await hosts.record_check(
            there=found.there, gone=found.gone, unanswered=found.unanswered
        )
        return JsonResponse({"lapsed": rows})

    return [
        Route("GET", "/v1/everyone/hosts", due),
        Route("POST", "/v1/everyone/hosts", record_check),
    ]
