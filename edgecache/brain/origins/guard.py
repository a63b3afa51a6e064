"""The egress guard: which addresses a tenant's origin may have.

A name is resolved here, all its addresses are checked, and the connection goes to a checked
address: resolving the name again could return another one.
"""

import asyncio
import ipaddress
import socket
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, Final
from weakref import WeakValueDictionary

from common.egress import Address, Network, is_allowed, is_port_allowed
from edgecache.brain.core.errors import OriginFailed, OriginForbidden, OriginTimeout
from edgecache.brain.core.shared_calls import SharedCalls

Answers = list[tuple[Any, ...]]

RESOLVE_TIMEOUT_S: Final = 5.0
# Concurrent look-ups. Each keeps its thread until the resolver gives up.
LOOK_UPS: Final = 256
# Of one organization, because its origins may redirect to ever new names that hang.
LOOK_UPS_OF_ONE: Final = 8


class Guard:
    """The guard of one brain.

    allows_private: let loopback and private addresses through, for development and tests.
    refused: networks of one's own, beyond those that are never let through.
    """

    def __init__(self, *, allows_private: bool, refused: Sequence[Network] = ()) -> None:
        self.allows_private = allows_private
        self._refused = tuple(refused)
        self._calls: SharedCalls[tuple[int, str, int], Answers] = SharedCalls()
        self._running = 0
        # Of organizations that look up names now.
        self._turns: WeakValueDictionary[int, asyncio.Semaphore] = WeakValueDictionary()

    async def resolve(self, host: str, port: int, *, owner: int) -> list[str]:
        """Return the addresses to connect to, in the resolver's order.

        owner: the organization that connects.

        Raises OriginForbidden when one of them is refused, OriginFailed without an address,
        OriginTimeout.
        """
        if not is_port_allowed(port, allows_private=self.allows_private):
            raise OriginForbidden(
                "The origin's port is not one that the cache connects to.", cause="port-forbidden"
            )
        addresses = [ipaddress.ip_address(text) for text in await self._look_up(host, port, owner)]
        if not all(self.allows(address) for address in addresses):
            raise OriginForbidden(cause="address-forbidden")
        return [str(address) for address in addresses]

    def allows(self, address: Address) -> bool:
        return is_allowed(address, allows_private=self.allows_private, refused=self._refused)

    async def _look_up(self, host: str, port: int, owner: int) -> list[str]:
        with suppress(ValueError):
            return [str(ipaddress.ip_address(host))]
        try:
            async with asyncio.timeout(RESOLVE_TIMEOUT_S):
                found = await self._calls.share(
                    (owner, host, port), partial(self._ask, host, port, owner)
                )
        except (OSError, UnicodeError) as exc:
            if isinstance(exc, TimeoutError):
                raise _late() from exc
            raise OriginFailed(
                "The origin's name could not be resolved.", cause="name-unresolved"
            ) from exc
        # A scope (fe80::1%eth0) only link-local addresses have, and these are refused.
        return list(dict.fromkeys(str(row[4][0]).partition("%")[0] for row in found))

    async def _ask(self, host: str, port: int, owner: int) -> Answers:
        """Look up a name; this ends when the resolver gives up, whoever waits for it.

        Raises OriginTimeout, TimeoutError, OSError, UnicodeError.
        """
        turns = self._turns.setdefault(owner, asyncio.Semaphore(LOOK_UPS_OF_ONE))
        async with asyncio.timeout(RESOLVE_TIMEOUT_S):
            await turns.acquire()
        try:
            if self._running >= LOOK_UPS:
                raise _late()
            self._running += 1
            try:
                # The thread cannot be cancelled.
                return await asyncio.shield(_ask_resolver(host, port))
            finally:
                self._running -= 1
        finally:
            turns.release()


def _late() -> OriginTimeout:
    return OriginTimeout("The origin's name could not be resolved in time.", cause="name-timeout")


def _ask_resolver(host: str, port: int) -> "asyncio.Future[Answers]":
    """Look up a name in its own thread.

    A tenant's name that hangs then delays neither other work nor the end of the process.
    """
    response: Future[Answers] = Future()

    def ask() -> None:
        try:
            response.set_result(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except Exception as exc:  # noqa: BLE001 - passed on to the caller
            response.set_exception(exc)

    threading.Thread(target=ask, name="brain-names", daemon=True).start()
    return asyncio.wrap_future(response)
