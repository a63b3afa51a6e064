"""Members of the organization and invitations to it."""

from collections.abc import Iterator, Sequence
from typing import Literal, Optional
from urllib.parse import quote

from zonal._sync.listing import listed
from zonal._sync.transport import Call, Transport
from zonal.bodies import flag, given
from zonal.decoding import decode
from zonal.types import ChangedMember, Invitation, Member, RemovedMember

Role = Literal["admin", "operator", "reader"]
PATH = "/v1/members"
INVITATIONS = "/v1/invitations"


class Members:
    """Who belongs to the organization, and who is invited."""

    def __init__(self, transport: Transport) -> None:
        """Send through a transport."""
        self._transport = transport

    def list(
        self,
        *,
        email: Optional[str] = None,
        role: Optional[Role] = None,
        label: Optional[str] = None,
        disabled: Optional[bool] = None,
    ) -> Iterator[Member]:
        """Return the members that the filters leave."""
        filters = {"email": email, "role": role, "label": label, "disabled": flag(disabled)}
        return listed(self._transport, PATH, Member, **filters)

    def get(self, user_id: str) -> Member:
        """Return one."""
        return decode(Member, self._transport.call(Call("GET", _path(user_id))))

    def update(
        self,
        user_id: str,
        *,
        roles: Optional[Sequence[Role]] = None,
        labels: Optional[Sequence[str]] = None,
        disabled: Optional[bool] = None,
    ) -> ChangedMember:
        """Change what is given; the answer lists the keys that have ended with the admin role."""
        body = given(roles=roles, labels=labels, disabled=disabled)
        return decode(ChangedMember, self._transport.call(Call("PATCH", _path(user_id), body)))

    def remove(self, user_id: str) -> RemovedMember:
        """Remove one from the organization; its sessions end, and the keys that it created."""
        return decode(RemovedMember, self._transport.call(Call("DELETE", _path(user_id))))

    def invite(
        self, email: str, roles: Sequence[Role], *, labels: Optional[Sequence[str]] = None
    ) -> Invitation:
        """Mail an invitation."""
        body = {"email": email, "roles": list(roles), **given(labels=labels)}
        return decode(Invitation, self._transport.call(Call("POST", INVITATIONS, body)))

    def invitations(
        self, *, email: Optional[str] = None, state: Optional[str] = None
    ) -> Iterator[Invitation]:
        """Return the invitations that the filters leave."""
        return listed(self._transport, INVITATIONS, Invitation, email=email, state=state)

    def revoke_invitation(self, invitation_id: str) -> None:
        """Withdraw an invitation: its link ends."""
        path = f"{INVITATIONS}/{quote(invitation_id, safe='')}"
        self._transport.call(Call("DELETE", path))


def _path(user_id: str) -> str:
    return f"{PATH}/{quote(user_id, safe='')}"
