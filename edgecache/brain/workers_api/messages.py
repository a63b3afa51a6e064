"""Parsing of workers' messages."""

from collections.abc import Callable
from typing import TypeVar

from edgecache.brain.errors import Invalid
from edgecache.brain.json_api import JsonCall
from edgecache.protocol.fields import Fields, MalformedMessage

Message = TypeVar("Message")


def read(call: JsonCall, message: Callable[[Fields], Message]) -> Message:
    """Return the body's message. message: its class's ``read``.

    Raises Invalid with the wrong fields.
    """
    try:
        return message(Fields(call.body))
    except MalformedMessage as exc:
        raise Invalid(
            [{"field": row.field, "code": "invalid", "message": row.message} for row in exc.errors]
        ) from None
