"""A request as the parser gives it piece by piece: what it may cost the server.

Of a head, its length; of a body, time and work of the parser.
"""

from typing import Final

from edgecache.http.headers import Headers
from edgecache.http.scope import HttpScope
from edgecache.http.server.limits import NEVER, ServerLimits

HEADER_LIMIT: Final = 200
VERSIONS: Final = frozenset(("1.0", "1.1"))
# Maximum chunks in one read of at most 256 KiB. Each costs a microsecond, so very small ones would
# use more time than their bytes justify.
MAX_CHUNKS: Final = 8192
MAX_TINY_CHUNKS: Final = 512
TINY_BYTES: Final = 16


class HeadRefused(Exception):
    """A head that is invalid or over a limit. status: of the response."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class RequestHead:
    """A request's target and header fields, as they were sent. pieces: of the target."""

    __slots__ = ("_limit_bytes", "fields", "pieces")

    def __init__(self, limit_bytes: int) -> None:
        """limit_bytes: of the target, names and values together."""
        self._limit_bytes = limit_bytes
        self.pieces: list[bytes] = []
        self.fields: list[tuple[bytes, bytes]] = []

    @property
    def target(self) -> bytes:
        pieces = self.pieces
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def scope(self, method: bytes, version: str, client: str) -> HttpScope:
        """Return the parsed head.

        Raises HeadRefused: too long; no host, several, or another one in the target; an unsupported
        version of HTTP.
        """
        sizes = [len(name) + len(value) for name, value in self.fields]
        if len(self.target) + sum(sizes) > self._limit_bytes:
            raise HeadRefused(431)
        headers = Headers(
            [
                (name.decode("latin-1").lower(), value.decode("latin-1"))
                for name, value in self.fields
            ]
        )
        if version not in VERSIONS:
            raise HeadRefused(505)
        hosts = headers.get_all("host")
        host, path, query = _parts_of(self.target.decode("latin-1"))
        if len(hosts) > 1 or (not hosts and version == "1.1"):
            raise HeadRefused(400)
        # The target's host takes precedence, but a proxy in front of this server may use the other
        # one.
        if host and host.lower() != headers.get("host").lower():
            raise HeadRefused(400)
        if version == "1.0" and headers.get("transfer-encoding"):
            # Its sender cannot know chunks: where the body ends is a guess (RFC 9112 §6.1).
            raise HeadRefused(400)
        return HttpScope(
            method=method.decode("latin-1"),
            raw_path=path,
            query_string=query.partition("#")[0],
            http_version=version,
            headers=headers,
            client=client,
        )


class BodyBounds:
    """The bounds of one request's body after another's. Times are the event loop's."""

    __slots__ = ("_began", "_bytes", "_chunks", "_limits", "_silent_bytes")

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self._began = NEVER
        # Chunks in the current read.
        self._chunks = 0
        self._bytes = 0
        # Frames of chunks and trailer fields since the last piece of the body.
        self._silent_bytes = 0

    def begin(self, now: float) -> float:
        """Begin a body; return the deadline of its first bytes."""
        self._began, self._silent_bytes = now, 0
        return now + self._limits.send_timeout_s

    def deadline(self, now: float, received_bytes: int) -> float:
        """Return the deadline of the next bytes: of a pause, and of the pace of the whole."""
        allowed = self._limits.body_grace_s + received_bytes / self._limits.body_bytes_per_s
        return min(now + self._limits.send_timeout_s, self._began + allowed)

    def end(self) -> None:
        """End a body: the read's remaining bytes are other requests."""
        self._silent_bytes = 0

    def receive(self, count: int) -> None:
        """Count the bytes of a read before they are parsed. Raises HeadRefused."""
        self._chunks = self._bytes = 0
        if self._silent_bytes > self._limits.head_bytes:
            raise HeadRefused(431)
        self._silent_bytes += count

    def add_piece(self, size: int) -> None:
        """Count a piece of the body. Raises HeadRefused."""
        self._silent_bytes = 0
        self._chunks += 1
        self._bytes += size
        is_tiny = self._bytes < TINY_BYTES * self._chunks
        if self._chunks > (MAX_TINY_CHUNKS if is_tiny else MAX_CHUNKS):
            raise HeadRefused(400)


def _parts_of(target: str) -> tuple[str, str, str]:
    """Return host, path and query of a request target, in absolute form too (RFC 9112 §3.2.2)."""
    path, _, query = target.partition("?")
    host = ""
    if not path.startswith("/"):
        _, separator, rest = path.partition("://")
        host, _, path = rest.partition("/") if separator else ("", "", path)
        path = "/" + path
    return host, path, query
