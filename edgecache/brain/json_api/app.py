"""JSON over HTTP: routes, limited bodies, one place that renders errors.

Used by the internal API and the workers' API.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl
from uuid import UUID

import structlog

from common import tracing
from common.version import VERSION
from edgecache.brain.core.errors import (
    BrainError,
    DatabaseUnavailable,
    Invalid,
    NotFound,
    StoreUnavailable,
    Unavailable,
)
from edgecache.brain.json_api.errors import (
    BodyTooLarge,
    MalformedBody,
    PathMethodNotAllowed,
    SlowBody,
)
from edgecache.brain.stores.readiness import Readiness
from edgecache.http.exchange import ClientGone, Exchange
from edgecache.http.headers import Headers
from edgecache.http.scope import HttpScope
from edgecache.protocol.fields import MalformedMessage, decode, encode, read

T = TypeVar("T")

log = structlog.get_logger(__name__)

BODY_LIMIT_BYTES: Final = 2**20
BODY_TIMEOUT_S: Final = 10.0
ANSWER_TIMEOUT_S: Final = 60.0
JSON: Final = ("content-type", "application/json")
NEVER_STORED: Final = ("cache-control", "no-store")


@dataclass(slots=True)
class JsonCall:
    """One request.

    captures: the path's parameters.
    query: the last value of each name.
    client: the peer's IP address.
    body: JSON, or empty.
    caller: the result of authentication.
    """

    method: str
    path: str
    captures: Mapping[str, str]
    query: Mapping[str, str]
    headers: Headers
    client: str
    body: bytes = b""
    caller: Any = None

    def read(self, message: type[T]) -> T:
        """Return the body; an empty one is an empty object. Raises MalformedMessage."""
        return decode(self.body or b"{}", message)

    def read_query(self, message: type[T]) -> T:
        """Return the query's parameters. Raises MalformedMessage."""
        return read(self.query, message, is_text=True)


@dataclass(frozen=True, slots=True)
class JsonResponse:
    """A handler's response: bytes of another type, or JSON.

    In JSON dataclasses and structs become objects; dates are ISO 8601, UUIDs text.
    """

    body: object = None
    status: int = 200
    content_type: str = ""


Handler = Callable[[JsonCall], Awaitable[JsonResponse]]


@dataclass(frozen=True, slots=True)
class Route:
    """A method and a path, as ``/v1/nodes/{id}``.

    is_open: needs no credential. is_local: needs none from this machine.
    """

    method: str
    path: str
    handler: Handler
    is_open: bool = False
    is_local: bool = False
    body_limit_bytes: int = BODY_LIMIT_BYTES
    timeout_s: float = ANSWER_TIMEOUT_S


class JsonApi:
    """An application of routes that share one way of authentication."""

    def __init__(
        self,
        routes: Iterable[Route],
        authenticate: Callable[[JsonCall], Awaitable[object]],
        *,
        codes: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """authenticate: returns the caller or raises NotAuthenticated, before the body is read.

        codes: this API's names for errors of the brain's parts, where they differ.
        """
        self._routes = [(_pattern(route.path), route) for route in routes]
        self._authenticate = authenticate
        self._codes = codes

    async def __call__(self, scope: HttpScope, exchange: Exchange) -> None:
        """Answer one request; every error is JSON without internal details."""
        try:
            answer = await self._answer(scope, exchange)
        except ClientGone:
            return
        except BrainError as error:
            answer = _refused(error, self._codes)
        except TimeoutError:
            log.warning("brain_call_timed_out", method=scope.method, path=scope.path)
            answer = _refused(Unavailable("The answer took too long."), self._codes)
        except Exception:
            log.exception("brain_call_failed", method=scope.method, path=scope.path)
            answer = JsonResponse({"code": "internal", "detail": "Something went wrong."}, 500)
        respond(exchange, answer)

    async def _answer(self, scope: HttpScope, exchange: Exchange) -> JsonResponse:
        route, captures = self._find(scope.method, scope.path)
        call = JsonCall(
            method=scope.method,
            path=scope.path,
            captures=captures,
            query=dict(parse_qsl(scope.query_string, keep_blank_values=True)),
            headers=scope.headers,
            client=scope.client_address,
        )
        if not (route.is_open or (route.is_local and scope.is_local)):
            call.caller = await self._authenticate(call)
        if route.method in {"POST", "PUT", "PATCH"}:
            call.body = await read_body(exchange, limit_bytes=route.body_limit_bytes)
        async with asyncio.timeout(route.timeout_s):
            try:
                return await self._handled(route, call)
            except MalformedMessage as error:
                is_whole = not error.errors[0].field
                raise (MalformedBody if is_whole else Invalid(error.errors)) from None

    async def _handled(self, route: Route, call: JsonCall) -> JsonResponse:
        traceparent = call.headers.get(tracing.TRACEPARENT)
        # Only from authenticated callers, because anybody can send one.
        if not traceparent or route.is_open:
            return await route.handler(call)
        with tracing.continued(f"brain {route.method} {route.path}", traceparent):
            return await route.handler(call)

    def _find(self, method: str, path: str) -> tuple[Route, dict[str, str]]:
        is_known = False
        for pattern, route in self._routes:
            match = pattern.fullmatch(path)
            if match is None:
                continue
            if route.method == method:
                return route, match.groupdict()
            is_known = True
        raise PathMethodNotAllowed if is_known else NotFound


async def read_body(exchange: Exchange, *, limit_bytes: int) -> bytes:
    """Return the body. Raises BodyTooLarge, SlowBody."""
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            async for piece in exchange:
                size += len(piece)
                if size > limit_bytes:
                    raise BodyTooLarge
                pieces.append(bytes(piece))
    except TimeoutError:
        raise SlowBody from None
    return b"".join(pieces)


def respond(exchange: Exchange, answer: JsonResponse) -> None:
    if answer.body is None:
        exchange.response_empty(answer.status, [NEVER_STORED])
        return
    if isinstance(answer.body, bytes):
        headers = [("content-type", answer.content_type), NEVER_STORED]
        exchange.response_bytes(answer.status, headers, answer.body)
        return
    headers = [JSON, NEVER_STORED]
    if answer.status == 401:
        headers.append(("www-authenticate", "Bearer"))
    exchange.response_bytes(answer.status, headers, encode(answer.body))


def health_route(readiness: Readiness, brain_id: UUID) -> Route:
    """Return ``GET /health``: whether this brain can do its work. It needs no credential."""

    async def health(_call: JsonCall) -> JsonResponse:
        missing = await readiness.missing()
        if missing:
            raise StoreUnavailable if missing == "store" else DatabaseUnavailable
        return JsonResponse({"status": "ok", "version": VERSION, "brain_id": str(brain_id)})

    return Route("GET", "/health", health, is_open=True)


def _refused(error: BrainError, codes: Mapping[str, str]) -> JsonResponse:
    code = codes.get(error.code, error.code)
    problem: dict[str, object] = {"code": code, "detail": error.detail}
    if isinstance(error, Invalid):
        problem["errors"] = error.errors
    return JsonResponse(problem, error.status)


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(path)))
