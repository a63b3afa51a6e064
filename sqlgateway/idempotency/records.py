"""What is kept of a request with an ``Idempotency-Key``, in the tenant's own database.

The tenant's roles can read and write the table, so a record is encrypted, authenticated, and bound
to its organization, environment, user and key: only the gateway can make or read one, and one that
was moved or altered counts as absent. A role that deletes a row can have a request run again, which
is no more than it could do by sending the request without a key.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Any, Final, Self

import orjson

from platform_site.lib import crypto
from platform_site.lib.errors import InvalidRequest
from sqlgateway.execution.requests import Caller

HEADER: Final = "Idempotency-Key"
PURPOSE: Final = "sql idempotency"
# Visible ASCII: a key is compared byte by byte.
KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")


@dataclass(frozen=True, slots=True)
class Key:
    """One key of one caller. body_hash: of the request that it came with."""

    caller: Caller
    text: str
    body_hash: str

    @classmethod
    def of(cls, caller: Caller, text: str, body: dict[str, Any]) -> Self:
        """Return the key of a request; bodies that differ in blanks or order are the same.

        Raises InvalidRequest if it is no key.
        """
        if KEY.fullmatch(text) is None:
            message = "1 to 255 visible ASCII characters."
            raise InvalidRequest.for_field(HEADER, message)
        canonical = orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
        return cls(caller, text, hashlib.sha256(canonical).hexdigest())

    @property
    def bound_to(self) -> bytes:
        """What a record belongs to, as bytes that no other combination has."""
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
        """Return what a record holds, None if it is not authentic."""
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
    """A record's content. at: Unix seconds. is_same_request: its role and body are the key's."""

    answer: bytes
    at: float
    is_same_request: bool
