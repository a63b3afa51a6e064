"""A validated request as a value."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Self
from uuid import UUID

from django.conf import settings

from common.errors import InvalidRequest
from common.permissions import Role, database_role
from common.principals import Principal, Scope
from sqlgateway.clusters.organization_limits import Quota
from sqlgateway.formats.results import RowFormat
from sqlgateway.run.parameters import Param, encode_params

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
    explain: what was asked for instead of the result, if anything.
    """

    text: str
    params: Sequence[Param] | None = None
    form: RowFormat = field(default_factory=RowFormat)
    offset: int = 0
    explain: Literal["", "plan", "analyze"] = ""

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


def parsed(given: dict[str, Any], *, limits: Quota, limit_ms: int | None = None) -> SqlRequest:
    """Return the request of a validated body.

    limits: the organization's own.
    limit_ms: the default and the maximum of the timeout; None for that of an answer in JSON.
    Raises InvalidRequest with the name of a field that exceeds the limits, or cannot be sent to
    PostgreSQL.
    """
    is_batch = "queries" in given
    limit_ms = limit_ms or limits.timeout_ms
    items = given["queries"] if is_batch else [given]
    _check_rows(given, "", limits)
    texts = []
    for index, item in enumerate(items):
        path = f"queries.{index}." if is_batch else ""
        _check_rows(item, path, limits)
        # An item's own options override the request's.
        texts.append(_sql_text({**given, **item}, path, limits))
    return SqlRequest(
        texts=tuple(texts),
        is_batch=is_batch,
        read_only=bool(given.get("read_only")),
        isolation=given.get("isolation"),
        timeout_ms=min(given.get("timeout_ms") or limit_ms, limit_ms),
        max_bytes=limits.max_bytes,
    )


def _check_rows(options: dict[str, Any], path: str, limits: Quota) -> None:
    """Refuse a number of rows above the limit: the result would be truncated at the limit."""
    if options.get("max_rows", 0) > limits.max_rows:
        raise InvalidRequest.for_field(f"{path}max_rows", f"At most {limits.max_rows}.")


def _sql_text(item: dict[str, Any], path: str, limits: Quota) -> SqlText:
    text = item["query"]
    # libpq reads a text up to its first NUL, and would silently ignore the rest.
    if "\0" in text:
        raise InvalidRequest.for_field(f"{path}query", "SQL holds no NUL character.", code="nul")
    params = item.get("params")
    encoded = None if params is None else encode_params(params, field=f"{path}params")
    how = item.get("explain")
    form = RowFormat(
        max_rows=item.get("max_rows") or limits.max_rows,
        rows_as=item.get("rows", "objects"),
        numeric=item.get("numeric", "string"),
        # A plan is JSON in the answer, however the statement's own values were asked for.
        json="value" if how else item.get("json", "value"),
        values="json" if how else item.get("values", "json"),
    )
    if not how:
        return SqlText(text, encoded, form)
    text, offset = explained(text, how)
    # By the extended protocol: with the simple one a second statement would run without EXPLAIN.
    return SqlText(
        text, encoded or [], form, offset, explain="analyze" if how == "analyze" else "plan"
    )
