"""Records of requests with an ``Idempotency-Key``, in the tenant's own database.

The tenant's roles can read and write the table. So a record is encrypted, authenticated, and bound
to its organization, environment, user and key: only the gateway can create or read records, and a
record that was moved or altered is ignored. A tenant that deletes a row can repeat a request, but
it could also send the request without a key.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Any, Final, Self

import orjson

from common import crypto
from common.errors import InvalidRequest
from sqlgateway.run.parameters import canonical
from sqlgateway.run.requests import Caller

HEADER: Final = "Idempotency-Key"
PURPOSE: Final = "sql idempotency"
# Visible ASCII: a key is compared byte by byte.
KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a caller. body_hash: the hash of the request's body."""

    caller: Caller
    text: str
    body_hash: str

    @classmethod
    def of(cls, caller: Caller, text: str, body: dict[str, Any]) -> Self:
        """Return the key of a request; whitespace and order in its body do not matter.

        Raises InvalidRequest if the key has invalid characters, or the parameters are too deep.
        """
        if KEY.fullmatch(text) is None:
            message = "1 to 255 visible ASCII characters."
            raise InvalidRequest.for_field(HEADER, message)
        return cls(caller, text, hashlib.sha256(canonical(body)).hexdigest())

    @property
    def bound_to(self) -> bytes:
        """Bytes that identify organization, environment, user and key."""
        scope, user = self.caller.scope, str(self.caller.user_id or "development token")
        return orjson.dumps([scope.organization_id, scope.environment_pk, user, self.text])

    @property
    def digest(self) -> bytes:
        """The key in the table: 32 bytes."""
        return hashlib.sha256(self.bound_to).digest()

    def seal(self, answer: bytes, *, now: float) -> bytes:
        """Return the record of an answer."""
        head = orjson.dumps({"at": now, "role": self.caller.role, "body": self.body_hash})
        data = head + b"\n" + answer
        return crypto.seal(data, purpose=PURPOSE, associated=self.bound_to)

    def unseal(self, record: bytes) -> "StoredAnswer | None":
        """Return the content of a record, None if it is not authentic."""
        try:
            data = crypto.unseal(record, purpose=PURPOSE, associated=self.bound_to)
        except crypto.NotAuthentic:
            return None
        head, _, answer = data.partition(b"\n")
        given = orjson.loads(head)
        is_same = given["body"] == self.body_hash and given["role"] == self.caller.role
        return StoredAnswer(answer, given["at"], is_same_request=is_same)


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """The content of a record.

    at: when it was written, in Unix seconds.
    is_same_request: True if role and body are those of the present request.
    """

    answer: bytes
    at: float
    is_same_request: bool
