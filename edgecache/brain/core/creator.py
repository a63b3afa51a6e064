"""Who creates an access key, an origin or a node, as the platform names them."""

from typing import Final, NamedTuple
from uuid import UUID

from edgecache.protocol.fields import Message, Text


class Creator(NamedTuple):
    """The name to show, and the member's id; None for an API key and a development token."""

    name: str = ""
    user_id: UUID | None = None


NO_CREATOR: Final = Creator()


class CreatorMessage(Message, frozen=True, kw_only=True):
    """The fields that name the creator of a new row."""

    created_by: Text = ""
    creator_id: UUID | None = None

    @property
    def creator(self) -> Creator:
        """Return them together."""
        return Creator(self.created_by, self.creator_id)
