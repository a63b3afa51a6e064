"""What the server and its clients know of each other."""

from collections.abc import Callable
from typing import Protocol

from edgecache.http.exchange import App
from edgecache.http.scope import HttpScope
from edgecache.http.server.limits import ServerLimits
from edgecache.runtime.turns import Leave


class Client(Protocol):
    """A client's connection, as the server sees it. deadline: by the event loop's time.

    network: its address, of IPv6 the /64.
    """

    @property
    def deadline(self) -> float: ...
    @property
    def is_idle(self) -> bool: ...
    @property
    def network(self) -> str: ...
    def close(self) -> None: ...
    def cut(self) -> None: ...
    def expire(self) -> None: ...


class ServerContract(Protocol):
    """The server, as its connections see it."""

    @property
    def app(self) -> App: ...
    @property
    def limits(self) -> ServerLimits: ...
    @property
    def is_stopping(self) -> bool: ...
    def opened(self, client: Client) -> None: ...
    def closed(self, client: Client) -> None: ...
    def take_turn(self, scope: HttpScope, begin: Callable[[], None]) -> Leave | None: ...
