"""Environments of the organization."""

from collections.abc import Iterator
from typing import Optional
from urllib.parse import quote

from zonal._sync.listing import listed
from zonal._sync.transport import Call, Transport
from zonal.bodies import given
from zonal.decoding import decode
from zonal.types import Environment, EnvironmentDetail

PATH = "/v1/environments"


class Environments:
    """``live``, ``sandbox`` and the organization's own."""

    def __init__(self, transport: Transport) -> None:
        """Send through a transport."""
        self._transport = transport

    def list(self) -> Iterator[Environment]:
        """Return all of them."""
        return listed(self._transport, PATH, Environment)

    def get(self, environment: str) -> EnvironmentDetail:
        """Return one by its id or name, with the state of its database."""
        return self._one(Call("GET", _path(environment)))

    def create(
        self, name: str, *, environment_id: Optional[str] = None, copy_of: Optional[str] = None
    ) -> EnvironmentDetail:
        """Make one, empty or with a copy of another one's data.

        environment_id: without it the name, which then has lower-case letters, digits and dashes.
        """
        body = {"name": name, **given(**{"id": environment_id, "from": copy_of})}
        return self._one(Call("POST", PATH, body))

    def rename(self, environment: str, name: str) -> EnvironmentDetail:
        """Change its name; the id stays."""
        return self._one(Call("PATCH", _path(environment), {"name": name}))

    def delete(self, environment: str) -> None:
        """Delete one with its data and its sessions."""
        self._transport.call(Call("DELETE", _path(environment)))

    def _one(self, call: Call) -> EnvironmentDetail:
        return decode(EnvironmentDetail, self._transport.call(call))


def _path(environment: str) -> str:
    return f"{PATH}/{quote(environment, safe='')}"
