"""The server, as its connections see it."""

from typing import TYPE_CHECKING, Protocol

from edgecache.http.exchange import App

if TYPE_CHECKING:
    # They know each other.
    from edgecache.http.connection import Connection


class Registry(Protocol):
    """What a connection needs of its server."""

    @property
    def app(self) -> App: ...
    def opened(self, connection: "Connection") -> bool: ...
    def closed(self, connection: "Connection") -> None: ...
