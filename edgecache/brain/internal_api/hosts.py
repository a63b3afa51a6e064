"""``/v1/buckets/{id}/hosts``: host names under which a bucket answers plain HTTP.

The platform reads the DNS; the brain stores the result. At ``/v1/everyone/hosts`` the platform gets
the hosts that are due for a check, and sends what it found.
"""

import re
from dataclasses import asdict
from typing import Final

from edgecache.brain.directory.hosts import ROUND, Hosts
from edgecache.brain.internal_api.bodies import tenant_of
from edgecache.brain.internal_api.buckets import number
from edgecache.brain.json_api.app import JsonCall, JsonResponse, Route
from edgecache.protocol.fields import FieldReader

HOST_CHARS: Final = 253
TOKEN: Final = re.compile(r"[0-9a-f]{64}")
TOKEN_CHARS: Final = 64
TOKENS: Final = 100


def routes(hosts: Hosts) -> list[Route]:
    async def listing(call: JsonCall) -> JsonResponse:
        rows = await hosts.of(tenant_of(call.query), number(call))
        return JsonResponse({"hosts": rows})

    async def prove(call: JsonCall) -> JsonResponse:
        tenant, bucket_id = tenant_of(call.query), number(call)
        body = FieldReader(call.body)
        host = body.text("host", limit=HOST_CHARS)
        token = body.converted("token", _token, "must be 64 hexadecimal digits", "")
        seen = body.texts("seen", limit=TOKENS, length=TOKEN_CHARS)
        if not hosts.can_be_bucket_host(host):
            body.wrong("host", "must be a domain of your own, in lower case", None)
        body.finish()
        tokens = [text for text in seen if _token(text)]
        row, other = await hosts.prove(tenant, bucket_id, host, token=token, seen=tokens)
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
        body = FieldReader(call.body)
        results = {
            name: body.texts(name, limit=ROUND, length=TOKEN_CHARS)
            for name in ("there", "gone", "unanswered")
        }
        body.finish()
        rows = await hosts.record_check(**results)
        return JsonResponse({"lapsed": rows})

    return [
        Route("GET", "/v1/everyone/hosts", due),
        Route("POST", "/v1/everyone/hosts", record_check),
    ]


def _token(value: object) -> str | None:
    return value if isinstance(value, str) and TOKEN.fullmatch(value) else None
