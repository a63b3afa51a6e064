"""A validated request as a value."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Self
from uuid import UUID

from django.conf import settings

from common.permissions import Role, database_role
from common.principals import Principal, Scope
from sqlgateway.formats.results import RowFormat
from sqlgateway.run.parameters import Param

Isolation = Literal["read committed", "repeatable read", "serializable"]
ISOLATIONS: Final = ("read committed", "repeatable read", "serializable")
EXPLAIN: Final = "EXPLAIN (FORMAT JSON) "
# Runs the statement, including its writes, and measures it.
EXPLAIN_ANALYZE: Final = "EXPLAIN (ANALYZE, FORMAT JSON) "
ARRAYS: Final = RowFormat(rows_as="arrays")


@dataclass(frozen=True, slots=True)
class Caller:
    """The user, API key or development token that runs a request.

    user_id: the id of the user or of the API key; None for a development token.
    name: as in the audit trail.
    """

    scope: Scope
    role: Role
    user_id: UUID | None = None
    name: str = ""

    @classmethod
    def of(cls, principal: Principal) -> Self:
        """Return the caller for a principal. Raises Forbidden if none of its roles is known."""
        role = database_role(principal)
        return cls(principal.scope, role, principal.actor_id, principal.audit_name)

    @property
    def sees_all(self) -> bool:
        """True if the caller may see and cancel all requests of the environment."""
        return self.role == "admin"


@dataclass(frozen=True, slots=True)
class SqlText:
    """One SQL text to send to the server.

    params: None selects the simple protocol, in which the text may have several statements;
    otherwise the extended protocol is used, which accepts exactly one.
    offset: the number of characters that the gateway put before the caller's text.
    """

    text: str
    params: Sequence[Param] | None = None
    form: RowFormat = field(default_factory=RowFormat)
    offset: int = 0
    is_explained: bool = False

    @property
    def sent(self) -> bytes:
        """The bytes to send."""
        return self.text.encode()


@dataclass(frozen=True, slots=True)
class SqlRequest:
    """A validated request.

    texts: one, or with ``is_batch`` any number that run as one transaction.
    timeout_ms: the limit of its duration; for a stream or an import this includes the time in which
    the client reads or sends.
    max_bytes: the limit of the size of all rows in a JSON answer.
    """

    texts: tuple[SqlText, ...]
    is_batch: bool = False
    read_only: bool = False
    isolation: Isolation | None = None
    timeout_ms: int = field(default_factory=lambda: settings.SQL.timeout_ms)
    max_bytes: int = field(default_factory=lambda: settings.SQL.max_bytes)

    @property
    def text(self) -> str:
        """The statements as the caller sent them, without parameters."""
        return ";\n".join(sql_text.text[sql_text.offset :] for sql_text in self.texts)

    @property
    def opens_transaction(self) -> bool:
        """True if the gateway puts BEGIN and COMMIT around the texts."""
        return self.is_batch or self.isolation is not None

    @property
    def begin(self) -> bytes:
        """The statement that opens the transaction."""
        level = f" ISOLATION LEVEL {self.isolation.upper()}" if self.isolation else ""
        return f"BEGIN{level}".encode()


def explained(text: str, how: Literal[True, "analyze"]) -> tuple[str, int]:
    """Return the EXPLAIN of a statement, and the number of characters before the statement."""
    prefix = EXPLAIN_ANALYZE if how == "analyze" else EXPLAIN
    return prefix + text, len(prefix)
