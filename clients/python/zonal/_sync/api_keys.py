"""API keys, which programs sign in with."""

from collections.abc import Iterator, Sequence
from typing import Literal, Optional
from urllib.parse import quote

from zonal._sync.listing import listed
from zonal._sync.members import Role
from zonal._sync.transport import Call, Transport
from zonal.bodies import given
from zonal.decoding import decode
from zonal.types import ApiKey, NewApiKey

PATH = "/v1/api-keys"


class ApiKeys:
    """The environment's keys; an admin's session makes and revokes them, no key does."""

    def __init__(self, transport: Transport) -> None:
        """Send through a transport."""
        self._transport = transport

    def list(
        self, *, state: Optional[Literal["active", "expired", "revoked"]] = None
    ) -> Iterator[ApiKey]:
        """Return keys without their texts."""
        return listed(self._transport, PATH, ApiKey, state=state)

    def create(
        self,
        name: str,
        *,
        role: Role,
        scopes: Optional[Sequence[str]] = None,
        expires_in_days: Optional[int] = None,
    ) -> NewApiKey:
        """Make a key; only this answer has its text. scopes: all of the role's, without them."""
        body = {
            "name": name,
            "role": role,
            **given(
                scopes=None if scopes is None else list(scopes), expires_in_days=expires_in_days
            ),
        }
        return decode(NewApiKey, self._transport.call(Call("POST", PATH, body)))

    def revoke(self, key_id: str) -> None:
        """End a key; its next request is refused."""
        self._transport.call(Call("DELETE", f"{PATH}/{quote(key_id, safe='')}"))
