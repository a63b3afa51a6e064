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
    """A request's target and header fields, as they were sent. pieces: of the target."""

    __slots__ = ("fields", "pieces")

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.fields: list[tuple[bytes, bytes]] = []

    @property
    def target(self) -> bytes:
        pieces = self.pieces
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def scope(self, method: bytes, version: str, client: str, *, limit_bytes: int) -> Scope:
        """Return what the head says. limit_bytes: of its target, names and values together.

        Raises HeadRefused: too long; no host, or more than one.
        """
        sizes = [len(name) + len(value) for name, value in self.fields]
        if len(self.target) + sum(sizes) > limit_bytes:
            raise HeadRefused(431)
        headers = Headers(
            [
                (name.decode("latin-1").lower(), value.decode("latin-1"))
                for name, value in self.fields
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
