"""Calls to the brain's worker API. They block: they run in a thread of their own.

BrainError
├── BrainAway           not reached, or it answered a fault: try again later
├── BrainRefused        it does not take what was sent
├── CredentialRefused   401: the secret is wrong
└── NodeRemoved         410: this node is no more
"""

import http.client
import json
import logging
import time
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from edgecache.protocol.credentials import authorization
from edgecache.protocol.fields import Fields, MalformedMessage, parse
from edgecache.protocol.names import MESSAGE_LIMIT_BYTES
from edgecache.worker.sync.dialling import Failures, connect

log = logging.getLogger(__name__)

# A whole call may take so long, however slowly its answer drips.
CALL_LIMIT_S: Final = 20.0
PIECE_BYTES: Final = 1 << 16


class BrainError(Exception):
    """A call that did not do what it should."""


class BrainAway(BrainError):
    """The brain was not reached, or is not well."""


class BrainRefused(BrainError):
    """The brain does not take a message; its text has the status and the brain's code."""


class CredentialRefused(BrainError):
    """The brain does not know this node and secret."""


class NodeRemoved(BrainError):
    """The brain took this node out."""


class BrainApi:
    """One kept-alive connection. Not for several threads at once."""

    def __init__(self, url: str, node_id: UUID, secret: str, ca: Path | None = None) -> None:
        """Connect to nothing yet."""
        self._url = url
        self._ca = ca
        self._headers = {
            "Authorization": authorization(node_id, secret),
            "Content-Type": "application/json",
            "Accept": "application/json",
        }
        self._connection: http.client.HTTPConnection | None = None

    def call(self, method: str, path: str, message: dict[str, Any] | None = None) -> Fields:
        """Send a message, give the fields of the answer. Raises BrainError.

        A connection that the brain closed in the meantime is opened again, once: every call may be
        repeated.
        """
        body = None if message is None else json.dumps(message, separators=(",", ":")).encode()
        was_open = self._connection is not None
        try:
            status, answer = self._exchange(method, path, body)
        except (ConnectionError, http.client.BadStatusLine) as error:
            if not was_open:
                raise BrainAway(_reason(error)) from error
            status, answer = self._once_more(method, path, body)
        except Failures as error:
            raise BrainAway(_reason(error)) from error
        return _answered(status, answer)

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _once_more(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        try:
            return self._exchange(method, path, body)
        except Failures as error:
            raise BrainAway(_reason(error)) from error

    def _exchange(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = connect(self._url, self._ca)
        try:
            self._connection.request(method, path, body, self._headers)
            with self._connection.getresponse() as response:
                answer = _read(response)
                if response.will_close:
                    self.close()
                return response.status, answer
        except BaseException:
            self.close()
            raise


def _read(response: http.client.HTTPResponse) -> bytes:
    ends = time.monotonic() + CALL_LIMIT_S
    pieces, size = [], 0
    while piece := response.read1(PIECE_BYTES):
        pieces.append(piece)
        size += len(piece)
        if size > MESSAGE_LIMIT_BYTES:
            raise http.client.HTTPException("the answer is too long")
        if time.monotonic() > ends:
            raise TimeoutError("the answer takes too long")
    return b"".join(pieces)


def _answered(status: int, answer: bytes) -> Fields:
    if status == HTTPStatus.NO_CONTENT:
        return Fields({})
    if status == HTTPStatus.GONE:
        raise NodeRemoved
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        raise CredentialRefused
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS:
        raise BrainAway(f"it answered {status}")
    if status not in {HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.ACCEPTED}:
        raise BrainRefused(f"{status} {_code(answer)}")
    try:
        return parse(answer)
    except MalformedMessage as error:
        raise BrainAway("its answer is not JSON") from error


def _code(answer: bytes) -> str:
    try:
        return str(json.loads(answer)["code"])[:64]
    except (ValueError, KeyError, TypeError):
        return ""


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__
