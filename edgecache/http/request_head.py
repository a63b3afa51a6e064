"""The head of a request, as the parser gives it piece by piece."""

from typing import Final

from edgecache.http.headers import Headers
from edgecache.http.scope import Scope

HEADER_LIMIT: Final = 200


class HeadRefused(Exception):
    """A head that is over a limit, or not one. status: what its sender hears."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class RequestHead:
    """A request's target and header fields, as they were sent."""

    __slots__ = ("_fields", "_left", "_pieces")

    def __init__(self, limit_bytes: int) -> None:
        """limit_bytes: of the target, and of names and values together."""
        self._pieces: list[bytes] = []
        self._fields: list[tuple[bytes, bytes]] = []
        self._left = limit_bytes

    def add_target(self, piece: bytes) -> None:
        """Take a piece of the target. Raises HeadRefused."""
        self._take(len(piece))
        self._pieces.append(piece)

    def add_field(self, name: bytes, value: bytes) -> None:
        """Take a header field. Raises HeadRefused."""
        self._take(len(name) + len(value))
        if len(self._fields) >= HEADER_LIMIT:
            raise HeadRefused(431)
        self._fields.append((name, value))

    def _take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise HeadRefused(431)

    @property
    def target(self) -> bytes:
        """Return the request target."""
        pieces = self._pieces
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def scope(self, method: bytes, version: str, client: str) -> Scope:
        """Return what the head says.

        Raises HeadRefused: no host, or more than one.
        """
        headers = Headers(
            [
                (name.decode("latin-1").lower(), value.decode("latin-1"))
                for name, value in self._fields
            ]
        )
        hosts = headers.get_all("host")
        if len(hosts) > 1 or (not hosts and version == "1.1"):
            raise HeadRefused(400)
        target = self.target.decode("latin-1")
        path, _, query = _origin_form(target).partition("?")
        return Scope(
            method=method.decode("latin-1"),
            raw_path=path,
            query_string=query.partition("#")[0],
            http_version=version,
            headers=headers,
            client=client,
        )


def _origin_form(target: str) -> str:
    """Return path and query of a request target in absolute form, too (RFC 9112 §3.2.2)."""
    if target.startswith("/"):
        return target
    _, separator, rest = target.partition("://")
    if not separator:
        return "/" + target
    slash = rest.find("/")
    return rest[slash:] if slash >= 0 else "/"
