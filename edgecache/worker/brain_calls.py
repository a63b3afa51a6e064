"""Calls to the brain's worker API.

BrainCallError
├── BrainUnavailable    not reached, or it returned an error: try again later
├── BrainRefused        it refuses the message
├── CredentialRefused   401: the secret is wrong
└── NodeRemoved         410: this node was removed
"""

import json
import logging
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from edgecache.http.client import HttpClient, ServerAddress, request_head
from edgecache.http.outgoing import RequestFailed
from edgecache.protocol.credentials import authorization
from edgecache.protocol.fields import FieldReader, MalformedMessage, parse
from edgecache.protocol.names import MESSAGE_LIMIT_BYTES

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
        self, method: str, path: str, message: dict[str, Any] | None = None
    ) -> FieldReader:
        """Send a message; return the fields of the answer. Raises BrainCallError.

        It is sent again if a kept connection turns out to be closed: every call may be repeated.
        """
        body = b"" if message is None else json.dumps(message, separators=(",", ":")).encode()
        head = request_head(self._address, method, path, self._fields, length=len(body))
        try:
            response = await self._client.fetch(
                self._address, head + body, limit_bytes=MESSAGE_LIMIT_BYTES, timeout_s=CALL_LIMIT_S
            )
        except RequestFailed as failure:
            raise BrainUnavailable(str(failure.__cause__ or failure)) from failure
        return _fields_of(response.status, response.body)


def _fields_of(status: int, answer: bytes) -> FieldReader:
    if status == HTTPStatus.NO_CONTENT:
        return FieldReader({})
    if status == HTTPStatus.GONE:
        raise NodeRemoved
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        raise CredentialRefused
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS:
        raise BrainUnavailable(f"it answered {status}")
    if status not in {HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.ACCEPTED}:
        raise BrainRefused(f"{status} {_code(answer)}")
    try:
        return parse(answer)
    except MalformedMessage as error:
        raise BrainUnavailable("its answer is not JSON") from error


def _code(answer: bytes) -> str:
    try:
        return str(json.loads(answer)["code"])[:64]
    except (ValueError, KeyError, TypeError):
        return ""
