"""Environments of the organization."""

from collections.abc import AsyncIterator
from typing import Optional
from urllib.parse import quote

from zonal._async.listing import listed
from zonal._async.transport import AsyncTransport, Call
from zonal.bodies import given
from zonal.decoding import decode
from zonal.types import Environment, EnvironmentDetail

PATH = "/v1/environments"


class AsyncEnvironments:
    """``live``, ``sandbox`` and the organization's own."""

    def __init__(self, transport: AsyncTransport) -> None:
        """Send through a transport."""
        self._transport = transport

    def list(self) -> AsyncIterator[Environment]:
        """Return all of them."""
        return listed(self._transport, PATH, Environment)

    async def get(self, environment: str) -> EnvironmentDetail:
        """Return one by its id or name, with the state of its database."""
        return await self._one(Call("GET", _path(environment)))

    async def create(
        self, name: str, *, environment_id: Optional[str] = None, copy_of: Optional[str] = None
    ) -> EnvironmentDetail:
        """Make one, empty or with a copy of another one's data.

        environment_id: without it the name, which then has lower-case letters, digits and dashes.
        """
        body = {"name": name, **given(**{"id": environment_id, "from": copy_of})}
        return await self._one(Call("POST", PATH, body))

    async def rename(self, environment: str, name: str) -> EnvironmentDetail:
        """Change its name; the id stays."""
        return await self._one(Call("PATCH", _path(environment), {"name": name}))

    async def delete(self, environment: str) -> None:
        """Delete one with its data and its sessions."""
        await self._transport.call(Call("DELETE", _path(environment)))

    async def _one(self, call: Call) -> EnvironmentDetail:
        return decode(EnvironmentDetail, await self._transport.call(call))


def _path(environment: str) -> str:
    return f"{PATH}/{quote(environment, safe='')}"
