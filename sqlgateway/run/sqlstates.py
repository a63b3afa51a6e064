"""Convert PostgreSQL's errors to the gateway's."""

import re
from dataclasses import dataclass
from typing import Any, Final

import structlog
from psycopg import pq
from psycopg.pq.abc import PGresult

from common.errors import PlatformError
from environments.errors import QuotaExceeded
from sqlgateway import errors
from sqlgateway.clusters.placements import Login
from sqlgateway.hardening import quota_guard
from sqlgateway.hardening.database import is_revoked
from sqlgateway.pg.message_stream import Notice

Field = pq.DiagnosticField

TEMPLATES: Final = re.compile(r"\bzonal_(template_\d+|provisioner)\b")

# By prefix of the SQLSTATE; the longest one applies. Other errors are the statement's fault.
KINDS: Final[dict[str, type[PlatformError]]] = {
    "08": errors.SqlUnavailable,
    "08P": errors.SqlRefused,
    "23505": errors.SqlConflict,
    "23503": errors.SqlConflict,
    "23001": errors.SqlConflict,
    "23P01": errors.SqlConflict,
    "25006": errors.SqlForbidden,
    "40": errors.SqlConflict,
    "42501": errors.SqlForbidden,
    "53": errors.SqlUnavailable,
    "53400": errors.SqlTooLarge,
    "54": errors.SqlTooLarge,
    "55P03": errors.SqlConflict,
    "57014": errors.QueryCancelled,
    "57P0": errors.SqlUnavailable,
    "58": errors.EngineFault,
    "XX": errors.EngineFault,
    # Raised by the platform's own triggers (quota_guard.py).
    quota_guard.SQLSTATE: QuotaExceeded,
}
RETRYABLE: Final = frozenset({"40001", "40P01", "55P03"})
# The routines that raise PostgreSQL's internal error (XX000) "tuple concurrently updated", when two
# sessions change one object of the catalogue, as by ALTER ROLE. The message may be translated.
CONTENDED: Final = frozenset({b"simple_heap_update", b"simple_heap_delete"})
# The routines that refuse every write, with the SQLSTATE of a statement's limit (54000), until an
# operator has vacuumed: the server's transaction ids are used up.
USED_UP: Final = frozenset({b"GetNewTransactionId", b"GetNewMultiXactId"})
# The administrator ended the session.
ENDED: Final = "57P01"
ENDED_HINT: Final = (
    "The server stops, or the platform ended a transaction that held too many of the server's "
    "locks or wrote over the disk quota."
)
# A privilege is missing (insufficient_privilege). The name is the last word of the message.
FORBIDDEN: Final = "42501"
REVOKED_HINT: Final = "The platform refuses it to every role (docs/sql.md, What is refused)."
LOCK_HINT: Final = (
    "The platform refuses it to every role: its lock table is shared. Lock a row with SELECT … FOR "
    "UPDATE, or a table with LOCK TABLE."
)
# Names from the tenant's own schema, so that clients need not parse the message.
OBJECTS: Final = {
    "schema": Field.SCHEMA_NAME,
    "table": Field.TABLE_NAME,
    "column_name": Field.COLUMN_NAME,
    "constraint": Field.CONSTRAINT_NAME,
    "data_type": Field.DATATYPE_NAME,
}

# Classes of errors of the server itself, and the function with which PL/pgSQL raises errors.
OF_THE_SERVER: Final = frozenset({errors.EngineFault, errors.SqlUnavailable})
RAISE: Final = b"exec_stmt_raise"
# A tenant can raise messages of any length; an answer contains their beginning.
MESSAGE_LIMIT: Final = 8192

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ErrorPosition:
    """Which statement of the request failed.

    text: as the caller sent it.
    number: from 1; 0 if unknown.
    offset: the number of characters that the gateway put before the text, which positions exclude.
    """

    text: str
    number: int
    offset: int = 0


NOWHERE: Final = ErrorPosition("", 0)


def sqlstate_of(result: PGresult) -> str:
    """Return a failed result's SQLSTATE; empty when the server sent none."""
    return (result.error_field(Field.SQLSTATE) or b"").decode("ascii", "replace")


def is_fatal(result: PGresult) -> bool:
    """True if the server closes the connection with this error."""
    severity = result.error_field(Field.SEVERITY_NONLOCALIZED) or b""
    return severity in {b"FATAL", b"PANIC"}


def refusal(result: PGresult, login: Login, spot: ErrorPosition) -> PlatformError:
    """Return the error that answers a failed result.

    It never contains the server's file, line or routine, or the platform's names (``scrub``).
    """
    state = sqlstate_of(result)
    source = result.error_field(Field.SOURCE_FUNCTION)
    is_contended = source in CONTENDED
    kind = errors.SqlConflict if is_contended else kind_of(state)
    if source in USED_UP:
        kind = errors.SqlUnavailable
    if kind in OF_THE_SERVER and source == RAISE and not is_fatal(result):
        # Raised by the tenant's PL/pgSQL with an SQLSTATE of the server.
        kind = errors.SqlRefused
    message = _text_of(result, login, Field.MESSAGE_PRIMARY)
    if kind is QuotaExceeded:
        return kind(f"{message}. {_text_of(result, login, Field.MESSAGE_HINT)}")
    if kind is errors.EngineFault:
        # The message may describe the server's internals, so it is only logged.
        log.error("sql_engine_fault", sqlstate=state, message=message)
        return kind("The request id finds it in the log.", extra={"sqlstate": state})
    detail = _text_of(result, login, Field.MESSAGE_DETAIL)
    extra = _members(result, login, spot)
    extra["retryable"] = (
        is_contended or state in RETRYABLE or issubclass(kind, errors.SqlUnavailable)
    )
    if state == ENDED and is_fatal(result):
        extra["hint"] = ENDED_HINT
    elif state == FORBIDDEN and (refused := _revoked_hint(message)):
        extra.setdefault("hint", refused)
    return kind(f"{message}\n{detail}" if detail else message, extra=extra)


def _revoked_hint(message: str) -> str:
    name = message.rpartition(" ")[2]
    if "_advisory_" in name:
        return LOCK_HINT
    return REVOKED_HINT if is_revoked(name) else ""


def kind_of(state: str) -> type[PlatformError]:
    """Return the class of a SQLSTATE."""
    for length in range(len(state), 1, -1):
        kind = KINDS.get(state[:length])
        if kind is not None:
            return kind
    return errors.SqlRefused


def notice(given: Notice, login: Login, spot: ErrorPosition = NOWHERE) -> dict[str, Any]:
    """Return a notice's JSON, with the members that an error has. spot: of its statement."""
    severity = _text_of(given, login, Field.SEVERITY_NONLOCALIZED)
    detail = _text_of(given, login, Field.MESSAGE_DETAIL)
    members = _members(given, login, spot)
    return {"severity": severity, **members, **({"detail": detail} if detail else {})}


def _members(result: PGresult | Notice, login: Login, spot: ErrorPosition) -> dict[str, Any]:
    """Return what an error or a notice says about its statement and objects."""
    names = {"hint": Field.MESSAGE_HINT, **OBJECTS}
    said = {name: _text_of(result, login, field) for name, field in names.items()}
    return {
        "sqlstate": _text_of(result, login, Field.SQLSTATE),
        "message": _text_of(result, login, Field.MESSAGE_PRIMARY),
        **({"statement": spot.number} if spot.number else {}),
        **_position(result, spot),
        **{name: value for name, value in said.items() if value},
    }


def _text_of(result: PGresult | Notice, login: Login, field: pq.DiagnosticField) -> str:
    value = result.error_field(field) or b""
    text = value[:MESSAGE_LIMIT].decode("utf-8", "replace")
    return scrub(text, login)


def _position(result: PGresult | Notice, spot: ErrorPosition) -> dict[str, int]:
    """Return position, line and column, counted from 1 in characters of the caller's text."""
    raw = result.error_field(Field.STATEMENT_POSITION)
    if not raw:
        return {}
    position = int(raw) - spot.offset
    if not 1 <= position <= len(spot.text) + 1:
        return {}
    before = spot.text[: position - 1]
    line = before.count("\n") + 1
    column = position - 1 - (before.rfind("\n") + 1) + 1
    return {"position": position, "line": line, "column": column}


def scrub(text: str, login: Login) -> str:
    """Return a message without the platform's names and folders.

    The tenant's own role is shown as admin, operator or reader; every other opaque name becomes
    ``role`` or ``database``.
    """
    text = text.replace(login.user, login.role).replace(login.dbname, "database")
    return login.address.plain(TEMPLATES.sub("platform", text))
