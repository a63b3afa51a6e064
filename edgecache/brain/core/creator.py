"""Who creates an access key, an origin or a node, as the platform names them."""

from typing import Final, NamedTuple
from uuid import UUID

from edgecache.protocol.fields import FieldReader

NAME_CHARS: Final = 254


class Creator(NamedTuple):
    """The name to show, and the member's id; None for an API key and a development token."""

    name: str = ""
    user_id: UUID | None = None


NO_CREATOR: Final = Creator()


def take_creator(fields: FieldReader) -> Creator:
    """Take ``created_by`` and ``creator_id``; both may be absent."""
    name = fields.text("created_by", limit=NAME_CHARS, default="")
    return Creator(name, fields.uuid("creator_id") if fields.is_given("creator_id") else None)
