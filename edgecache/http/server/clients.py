"""The clients of one server: how many there are, and which of them get a permit."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Final

from edgecache.http.server.contract import Client

LOCAL: Final = frozenset(("127.0.0.1", "::1"))
# Delay before a connection is refused because no slot is free.
RETRY_S: Final = 0.02


class Clients:
    """Connections from the moment they are accepted. A client is named by its network at first."""

    def __init__(self, limit: int) -> None:
        """limit: of all clients together."""
        self.limit = limit
        self._open: set[Client] = set()
        # Accepted, and not open yet: within their TLS handshake, for example.
        self._opening = 0
        # The open connections that have a slot.
        self._admitted = 0
        # The open connections that count for their address.
        self._counted: set[Client] = set()
        # By address, those that are not open yet as well.
        self._networks: Counter[str] = Counter()
        self._remote = 0
        self._emptied = asyncio.Event()

    def __iter__(self) -> Iterator[Client]:
        """Iterate over the open connections, even if some close during the iteration."""
        return iter(list(self._open))

    def __len__(self) -> int:
        """Return how many there are, those that are not open yet as well."""
        return len(self._open) + self._opening

    def accepted(self) -> None:
        """Count a connection in; ``admit`` decides whether it stays."""
        self._opening += 1

    async def admit(self, network: str) -> bool:
        """Take a permit for a client; if there are too many, close an idle connection.

        False: all connections, or all of its address, are busy; then this client is not counted.
        """
        if not self._take_permit(network):
            # Others may have been closed by their clients, and be about to be noted.
            await asyncio.sleep(RETRY_S)
            if not self._take_permit(network):
                self._opening -= 1
                self._note_emptied()
                return False
        self._admitted += 1
        return True

    def opened(self, client: Client) -> None:
        """Note that an admitted connection is open."""
        self._opening -= 1
        self._admitted -= 1
        self._open.add(client)
        if client.network not in LOCAL:
            self._counted.add(client)

    def broke_off(self, network: str) -> None:
        """Count out an admitted connection that was never open."""
        self._opening -= 1
        self._admitted -= 1
        self._give_back(network)
        self._note_emptied()

    def closed(self, client: Client) -> None:
        """Count out a connection that was open."""
        self._uncount(client)
        self._open.discard(client)
        self._note_emptied()

    async def wait_until_none(self, timeout_s: float) -> None:
        """Return when all are closed, or after a while."""
        if not len(self) or not timeout_s:
            return
        self._emptied.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._emptied.wait()

    def _note_emptied(self) -> None:
        if not len(self):
            self._emptied.set()

    def _take_permit(self, network: str) -> bool:
        if not self._is_fair(network):
            return False
        if len(self._open) + self._admitted < self.limit:
            return True
        idle = next((each for each in self._open if each.is_idle), None)
        if idle is None:
            self._give_back(network)
            return False
        idle.close()
        return True

    def _is_fair(self, network: str) -> bool:
        """Count a connection if its address then has no more than half of what others leave.

        An idle one of its own is closed for the new one. A proxy on this machine has many clients.
        """
        if network in LOCAL or self._count(network):
            return True
        own = (each for each in self._counted if each.network == network)
        idle = next((each for each in own if each.is_idle), None)
        if idle is None:
            return False
        self._uncount(idle)
        idle.close()
        return self._count(network)

    def _uncount(self, client: Client) -> None:
        if client in self._counted:
            self._counted.discard(client)
            self._give_back(client.network)

    def _give_back(self, network: str) -> None:
        if network in LOCAL:
            return
        self._remote -= 1
        self._networks[network] -= 1
        if not self._networks[network]:
            del self._networks[network]

    def _count(self, network: str) -> bool:
        own = self._networks[network]
        if own and 2 * (own + 1) > self.limit - (self._remote - own):
            return False
        self._networks[network] = own + 1
        self._remote += 1
        return True
