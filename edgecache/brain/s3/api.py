"""The object API: an application for port 9000 that speaks S3."""

import random
from typing import Final, Protocol

import structlog
from django.conf import settings

from edgecache.brain.errors import BrainError
from edgecache.brain.s3 import requests, xml
from edgecache.brain.s3.auth.access_keys import AccessKeys
from edgecache.brain.s3.auth.authentication import authenticate
from edgecache.brain.s3.calls import Answer, Call
from edgecache.brain.s3.conditions import Unchanged
from edgecache.brain.s3.errors import S3Error, of_the_brain
from edgecache.brain.s3.parts import S3Parts
from edgecache.brain.s3.request_log import Line, RequestLog
from edgecache.brain.s3.routes import operation_of
from edgecache.http.exchange import ClientGone, Exchange
from edgecache.http.heads import HeaderPairs
from edgecache.http.scope import Scope

log = structlog.get_logger(__name__)

REQUEST_ID_BITS: Final = 64
PULL_PREFIX: Final = "/p/"
SLOW_DOWN_S: Final = "1"
PUBLIC_NAME_CHARS: Final = 32


class Pull(Protocol):
    """What answers plain HTTP. bucket_id: of the host that was asked for, if that is a bucket's."""

    async def __call__(
        self, scope: Scope, exchange: Exchange, bucket_id: int | None = None
    ) -> None: ...


class ObjectApi:
    """Answers one request after the other; each gets a line in the log, without its secrets."""

    def __init__(self, parts: S3Parts, *, pull: Pull) -> None:
        """pull: answers ``/p/…`` and hosts that are buckets', which are no S3."""
        self._parts = parts
        self._keys = AccessKeys(parts.database, parts.coherence)
        self._pull = pull
        self._log = RequestLog(settings.LOG_FORMAT, settings.LOG_LEVEL)

    async def __call__(self, scope: Scope, exchange: Exchange) -> None:
        """Answer one request; whatever goes wrong, the caller hears S3's XML."""
        # A mark and no secret: not worth a system call.
        request_id = f"{random.getrandbits(REQUEST_ID_BITS):016X}"
        line = Line(request_id)
        try:
            await self._answer(scope, exchange, line)
        except ClientGone:
            line.error = "ClientGone"
            raise
        except Exception as exc:
            if not isinstance(exc, S3Error | BrainError):
                log.exception("object_request_failed", request_id=request_id)
            error = _as_s3(exc)
            line.error = error.code
            if exchange.is_answered:
                exchange.cut()
            else:
                _refuse(exchange, error, scope, request_id)
        finally:
            if self._log.is_on:
                self._log.write(line.fields(scope, exchange))

    async def _pulled(self, scope: Scope, exchange: Exchange, line: Line) -> bool:
        """Answer what is plain HTTP. A bucket's host comes first: nothing else is to be had there.

        Raises DatabaseAway.
        """
        bucket_id = await self._parts.hosts.bucket_id(scope.authority)
        if bucket_id is not None:
            line.bucket, line.key = requests.host_name(scope.authority), scope.path[1:]
        elif scope.raw_path.startswith(PULL_PREFIX):
            public_name, _, line.key = scope.path.removeprefix(PULL_PREFIX).partition("/")
            line.bucket = public_name[:PUBLIC_NAME_CHARS]
        else:
            return False
        line.operation, line.request_id = "Pull", ""
        await self._pull(scope, exchange, bucket_id)
        return True

    async def _answer(self, scope: Scope, exchange: Exchange, line: Line) -> None:
        parts = self._parts
        line.client = parts.streamer.offload.client_of(scope)
        may_be_plain = scope.raw_path.startswith(PULL_PREFIX)
        may_be_plain = may_be_plain or not parts.hosts.names_none(scope.authority)
        if may_be_plain and await self._pulled(scope, exchange, line):
            return
        request = requests.parse(scope, parts.s3_domains, line.request_id, client=line.client)
        line.bucket, line.key = request.bucket, request.key
        identity = await authenticate(request, self._keys)
        if identity is not None:
            line.access_key = identity.access_key
        call = Call(parts, request, exchange, identity)
        name, operation = operation_of(request)
        line.operation = name
        try:
            answer = await operation(call)
        except Unchanged as unchanged:
            _respond(exchange, Answer(304, unchanged.headers), line.request_id)
            return
        finally:
            line.is_hit = call.is_hit
        if answer is not None:
            _respond(exchange, answer, line.request_id)


def _as_s3(exc: Exception) -> S3Error:
    if isinstance(exc, S3Error):
        return exc
    if isinstance(exc, BrainError):
        return of_the_brain(exc)
    return S3Error("InternalError")


def _refuse(exchange: Exchange, error: S3Error, scope: Scope, request_id: str) -> None:
    headers = [*error.headers.items()]
    if error.status == 503:
        headers.append(("retry-after", SLOW_DOWN_S))
    body = xml.document(
        "Error",
        [
            ("Code", error.code),
            ("Message", error.message),
            *error.extra.items(),
            ("Resource", scope.path[:2048]),
            ("RequestId", request_id),
            ("HostId", request_id),
        ],
        namespace="",
    )
    _respond(exchange, Answer(error.status, headers, body), request_id)


def _respond(exchange: Exchange, answer: Answer, request_id: str) -> None:
    headers: HeaderPairs = [
        ("x-amz-request-id", request_id),
        ("x-amz-id-2", request_id),
        *answer.headers,
    ]
    if not answer.body or exchange.scope.method == "HEAD":
        exchange.response_empty(answer.status, headers)
        return
    exchange.response_bytes(
        answer.status, [*headers, ("content-type", answer.content_type)], answer.body
    )
