"""Calls to the brain's worker API.

BrainCallError
├── BrainUnavailable    not reached, or it returned an error: try again later
├── BrainRefused        it refuses the message
├── CredentialRefused   401: the secret is wrong
└── NodeRemoved         410: this node was removed
"""

import logging
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, TypeVar
from uuid import UUID

from edgecache.http.client import HttpClient, ServerAddress, request_head
from edgecache.http.outgoing import RequestFailed
from edgecache.protocol.credentials import authorization
from edgecache.protocol.fields import MalformedMessage, Message, decode, encode
from edgecache.protocol.names import MESSAGE_LIMIT_BYTES

T = TypeVar("T")

log = logging.getLogger(__name__)

# Limit of a whole call, however slowly its answer arrives.
CALL_LIMIT_S: Final = 20.0


class BrainCallError(Exception):
    """A call that did not do what it should."""


class BrainUnavailable(BrainCallError):
    """The brain was not reached, or is not well."""


class BrainRefused(BrainCallError):
    """The brain does not take a message; its text has the status and the brain's code."""


class CredentialRefused(BrainCallError):
    """The brain does not know this node and secret."""


class NodeRemoved(BrainCallError):
    """The brain took this node out."""


class BrainApi:
    def __init__(
        self, client: HttpClient, url: str, node_id: UUID, secret: str, ca: Path | None = None
    ) -> None:
        self._client = client
        self._address = ServerAddress(url, ca=ca)
        self._fields = {
            "authorization": authorization(node_id, secret),
            "content-type": "application/json",
            "accept": "application/json",
        }

    async def call(
        self, method: str, path: str, answer: type[T], message: Message | None = None
    ) -> T:
        """Send a message; return the answer. Raises BrainCallError.

        It is sent again if a kept connection turns out to be closed: every call may be repeated.
        """
        body = b"" if message is None else encode(message)
        head = request_head(self._address, method, path, self._fields, length=len(body))
        try:
            response = await self._client.fetch(
                self._address, head + body, limit_bytes=MESSAGE_LIMIT_BYTES, timeout_s=CALL_LIMIT_S
            )
        except RequestFailed as failure:
            raise BrainUnavailable(str(failure.__cause__ or failure)) from failure
        _check(response.status, response.body)
        try:
            return decode(response.body or b"{}", answer)
        except MalformedMessage as error:
            raise BrainUnavailable(f"its answer is malformed: {error}") from error


def _check(status: int, answer: bytes) -> None:
    if status == HTTPStatus.NO_CONTENT:
        return
    if status == HTTPStatus.GONE:
        raise NodeRemoved
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        raise CredentialRefused
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS:
        raise BrainUnavailable(f"it answered {status}")
    if status not in {HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.ACCEPTED}:
        raise BrainRefused(f"{status} {_code(answer)}")


def _code(answer: bytes) -> str:
    try:
        return str(decode(answer, dict[str, Any]).get("code", ""))[:64]
    except MalformedMessage:
        return ""
