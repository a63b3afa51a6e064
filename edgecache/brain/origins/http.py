"""Origins that speak plain HTTP: the cache reads from them, and only forwards clients' writes."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from http import HTTPStatus
from typing import Final
from urllib.parse import quote, unquote_to_bytes, urljoin, urlsplit

from edgecache.brain.core.errors import (
    KeyRefused,
    OriginDenied,
    OriginFailed,
    OriginMissing,
    OriginRangeRefused,
    OriginReadOnly,
)
from edgecache.brain.core.values import (
    Conditions,
    KeyPage,
    StagedFile,
    WrittenFields,
    check_url_key,
    has_dots,
)
from edgecache.brain.http_caching import caching_rules
from edgecache.brain.http_caching.cache_keys import SAFE
from edgecache.brain.origins.connections import (
    TRY_AGAIN,
    OriginConnections,
    Reply,
    Request,
    exchange,
)
from edgecache.brain.origins.driver import (
    PLAIN,
    OriginRequest,
    OriginResponse,
    TakeInterim,
    WriteResult,
)
from edgecache.brain.origins.headers import Pairs, answer_of, part_of
from edgecache.http.headers import lossless

REDIRECTS: Final = 5
REDIRECT: Final = frozenset({301, 302, 303, 307, 308})
GONE: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.GONE})
DENIED: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})
# ... a path that is encoded already, and a query.
SAFE_ENCODED: Final = SAFE + "%"
SAFE_QUERY: Final = SAFE_ENCODED + "?"


class HttpDriver:
    """A base URL followed by the key. host: that the origin gets, if not that of the URL."""

    def __init__(
        self,
        connections: OriginConnections,
        base_url: str,
        *,
        prefix: str,
        authorization: str = "",
        host: str = "",
    ) -> None:
        self._connections = connections
        self._host = host
        self._base = base_url.rstrip("/") + "/" + quote(prefix, safe=SAFE)
        self._authorization = authorization

    @asynccontextmanager
    async def get(self, key: str, request: OriginRequest = PLAIN) -> AsyncIterator[OriginResponse]:
        async with self._ask(request.method, key, request) as reply:
            answer = answer_of(reply.status, reply.pairs)
            if request.ranged:
                answer = part_of(answer)
            if answer.status == HTTPStatus.PARTIAL_CONTENT and not request.takes_any_status:
                raise OriginFailed("The origin sent a part of the object.")
            yield replace(answer, body=reply.body, is_complete=reply.is_complete)

    async def head(self, key: str) -> OriginResponse:
        """Get an object's metadata."""
        async with self._ask("HEAD", key, PLAIN) as reply:
            return answer_of(reply.status, reply.pairs)

    async def put(
        self, key: str, staged: StagedFile, fields: WrittenFields, conditions: Conditions
    ) -> WriteResult:
        raise OriginReadOnly

    async def delete(self, keys: Sequence[str]) -> None:
        raise OriginReadOnly

    @asynccontextmanager
    async def forward(
        self,
        method: str,
        url: str,
        headers: Pairs,
        body: bytes | AsyncIterator[bytes],
        take_interim: TakeInterim,
    ) -> AsyncIterator[Reply]:
        """Forward a client's request, once; redirects are returned to the client.

        It is sent without the credentials that the origin gave for reading: the client must not
        gain their rights. body: as long as the headers say.
        """
        request = Request(method, url, self._head(headers, url), body, take_interim)
        async with exchange(self._connections, request) as reply:
            yield reply

    def url(self, key: str, query: str = "", *, path: str | None = None) -> str:
        """Return a key's URL. path: how the URL spells the key; None encodes it.

        Raises KeyRefused.
        """
        if has_dots(key):
            # Such a path may lead out of this bucket's folder.
            raise KeyRefused("This bucket's origin cannot hold a key with a '.' or '..' segment.")
        spelled = quote(key, safe=SAFE) if path is None else encoded(path, SAFE_ENCODED)
        return self._base + spelled + (f"?{encoded(query, SAFE_QUERY)}" if query else "")

    def named(self, url: str) -> str:
        """Return a URL of the origin with the host that the origin gets."""
        parts = urlsplit(url)
        return parts._replace(netloc=self._host).geturl() if self._host else url

    def path_of(self, path: str) -> str | None:
        """Return what follows the base in a path at the origin, None for another path."""
        base = urlsplit(self._base).path
        return path.removeprefix(base) if path.startswith(base) else None

    def key_of(self, path: str) -> str | None:
        """Return the key of a path in the origin's URLs, or None."""
        base, whole = (
            unquote_to_bytes(text.encode("latin-1", "replace"))
            for text in (urlsplit(self._base).path, path)
        )
        if not whole.startswith(base):
            return None
        try:
            return check_url_key(whole.removeprefix(base).decode())
        except (UnicodeDecodeError, KeyRefused):
            return None

    def _head(self, headers: Pairs, url: str) -> Pairs:
        """Return the fields of a request, the host of another site after a redirect."""
        is_home = _site(url) == _site(self._base)
        host = self._host if self._host and is_home else urlsplit(url).netloc
        return [("host", host), *((name, lossless(value)) for name, value in headers)]

    async def list(self, prefix: str, start_after: str, delimiter: str, limit: int) -> KeyPage:
        raise OriginReadOnly("The bucket's origin cannot list its objects.")

    @asynccontextmanager
    async def _ask(self, method: str, key: str, request: OriginRequest) -> AsyncIterator[Reply]:
        url = self.url(key, request.query, path=request.path)
        if request.takes_any_status:
            async with self._exchange(method, url, request, has_rights=True) as reply:
                yield reply
            return
        home = _site(url)
        async with AsyncExitStack() as stack:
            for _ in range(REDIRECTS + 1):
                hop = await stack.enter_async_context(AsyncExitStack())
                is_home = _site(url) == home
                asking = self._exchange(method, url, request, has_rights=is_home)
                reply = await hop.enter_async_context(asking)
                if reply.status not in REDIRECT:
                    _check(reply, request)
                    yield reply
                    return
                url = _next(url, reply)
                await hop.aclose()
        raise OriginFailed("The origin redirects too often.", cause="redirect-loop")

    @asynccontextmanager
    async def _exchange(
        self, method: str, url: str, request: OriginRequest, *, has_rights: bool
    ) -> AsyncIterator[Reply]:
        """Send one request. has_rights: with the credentials that the origin was given."""
        headers = self._head([*request.headers, *request.ranged], url)
        if self._authorization and has_rights:
            headers = [pair for pair in headers if pair[0] != "authorization"]
            headers.append(("authorization", self._authorization))
        # Every response is passed on, 503 included.
        try_again = frozenset() if request.takes_any_status else TRY_AGAIN
        sent = Request(method, url, headers, take_interim=request.take_interim)
        asking = exchange(self._connections, sent, try_again=try_again)
        async with asking as reply:
            yield reply


def encoded(text: str, safe: str) -> str:
    """Return a part of a URL byte for byte, with what RFC 3986 does not allow there encoded."""
    return quote(text, safe=safe, encoding="latin-1", errors="strict")


def _site(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return (parts.scheme, parts.netloc)


def _next(url: str, reply: Reply) -> str:
    location = dict(reply.pairs).get("location", "")
    try:
        target = urljoin(url, location)
        parts = urlsplit(target)
        _ = parts.port
    except ValueError:
        raise OriginFailed(
            "The origin redirects to what is no URL.", cause="redirect-refused"
        ) from None
    is_downgrade = urlsplit(url).scheme == "https" and parts.scheme != "https"
    if not location or parts.scheme not in {"http", "https"} or is_downgrade:
        raise OriginFailed(
            "The origin redirects to where the cache does not follow.", cause="redirect-refused"
        )
    if parts.username is not None or not parts.hostname or not target.isascii():
        raise OriginFailed("The origin redirects to what is no URL.", cause="redirect-refused")
    return target.partition("#")[0]


def _check(reply: Reply, request: OriginRequest) -> None:
    status = reply.status
    if status == HTTPStatus.OK or (request.ranged and status == HTTPStatus.PARTIAL_CONTENT):
        return
    if request.ranged and status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
        raise OriginRangeRefused
    if status in GONE:
        missing = OriginMissing()
        missing.is_cacheable = caching_rules.allows_negative_caching(reply.pairs)
        raise missing
    if status in DENIED:
        raise OriginDenied
    raise OriginFailed(f"The origin answered {status}.", cause=f"status-{status}")
