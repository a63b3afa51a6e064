"""What the command says of an error, and the exit status that it ends with.

0 done, 1 refused by the platform, 2 called wrongly, 3 no answer, 4 not signed in, 5 done but the
answer cannot be shown, 130 interrupted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import zonal
from zonal.cli import terminal
from zonal.cli.configuration import NotSignedInError, UsageError

if TYPE_CHECKING:
    from zonal.types import Notice

REFUSED, CALLED_WRONGLY, NO_ANSWER, NOT_SIGNED_IN, UNREADABLE, INTERRUPTED = 1, 2, 3, 4, 5, 130


# In a dump: rows follow in the text, which psql sends by itself and PostgreSQL reads as SQL.
COPY = re.compile(r"^\s*COPY\s.*\sFROM\s+STDIN\b.*;\s*$", re.IGNORECASE | re.MULTILINE)


class FileError(Exception):
    """A refusal of what is in a file or a text.

    name: of the file, `-` for the standard input, nothing for an argument. text: the SQL that was
    sent.
    """

    def __init__(self, problem: zonal.ProblemError, name: str, text: str | None = None) -> None:
        """Take the refusal and what it is about."""
        super().__init__(str(problem))
        self.problem = problem
        self.name = name
        self.text = text


@contextmanager
def about(name: str, text: str | None = None) -> Iterator[None]:
    """Raise refusals within the block as a FileError."""
    try:
        yield
    except zonal.ProblemError as exc:
        raise FileError(exc, name, text) from exc


def status_of(exc: BaseException) -> int:
    """Return the exit status of an error."""
    if isinstance(exc, FileError):
        return status_of(exc.problem)
    if isinstance(exc, (NotSignedInError, zonal.AuthenticationError)):
        return NOT_SIGNED_IN
    if isinstance(exc, zonal.UnreadableAnswerError):
        return UNREADABLE
    unreachable = (
        zonal.ConnectionFailedError,
        zonal.StreamCutError,
        zonal.UnexpectedAnswerError,
    )
    if isinstance(exc, unreachable):
        return NO_ANSWER
    if isinstance(exc, UsageError):
        return CALLED_WRONGLY
    return REFUSED


def message_of(exc: BaseException, text: str | None = None) -> str:
    """Return a sentence for the person; text: the SQL that an error's place is shown in."""
    if isinstance(exc, FileError):
        lines = message_of(exc.problem, exc.text).split("\n")
        if isinstance(exc.problem, zonal.SqlError) and exc.problem.request_id:
            lines.append(f"Request {exc.problem.request_id}")
        return "\n".join([f"{_place_of(exc)}{lines[0]}", *lines[1:]])
    if isinstance(exc, zonal.SqlError):
        return "\n".join(_of_sql(exc, text))
    if isinstance(exc, zonal.ProblemError):
        said = str(exc)
        if exc.code in {"session_revoked", "token_expired", "token_invalid"}:
            return f"{said}. Run `zonal login`."
        return said
    return str(exc)


def say_notice(notice: Notice) -> None:
    """Show a message of the server with its details."""
    members = asdict(notice)
    terminal.say(f"{notice.severity}: {notice.message}")
    for line in _details(members):
        terminal.say(line)


def _of_sql(error: zonal.SqlError, text: str | None) -> list[str]:
    lines = [f"{error.sqlstate}: {error.detail or error.title}"]
    sent = (text or "").split("\n")
    if text and error.line and error.column and error.line <= len(sent):
        lines += _marked(sent[error.line - 1].rstrip("\r"), error.column)
    lines += _details({**error.body, "detail": None})
    if outcome := error.body.get("outcome"):
        lines.append(f"Transaction: {str(outcome).replace('_', ' ')}")
    if text and error.sqlstate == "42601":
        lines += _of_other_tools(text, error)
    return lines


def _marked(line: str, column: int) -> list[str]:
    """Return a line and a mark under a column, from 1; what a terminal would obey is escaped."""
    before = terminal.safe(line[: column - 1])
    return [terminal.safe(line), " " * terminal.width(before) + "^"]


def _details(members: dict[str, Any]) -> list[str]:
    """Return what PostgreSQL adds to a message of an error or a notice."""
    names = {"detail": "Detail", "hint": "Hint"}
    return [f"{shown}: {members[name]}" for name, shown in names.items() if members.get(name)]


def _of_other_tools(text: str, error: zonal.SqlError) -> list[str]:
    """Return what to do with a text that only psql can read."""
    found = COPY.search(text)
    if found and (error.line or 0) > text.count("\n", 0, found.start()):
        said = "copy_not_supported: HTTP does not carry COPY … FROM stdin. Dump with"
        return [f"{said} `pg_dump --inserts`, or put CSV into a table with `zonal import`."]
    lines = text.split("\n")
    at = (error.line or 0) - 1
    if 0 <= at < len(lines) and lines[at].startswith("\\"):
        return ["Lines that begin with a backslash are commands of psql: leave them out."]
    return []


def _place_of(error: FileError) -> str:
    """Return file, line and column of the file, as far as they are known."""
    if not error.name:
        return ""
    body = error.problem.body
    place = ["The standard input" if error.name == "-" else error.name]
    if isinstance(body.get("line"), int):
        place.append(f"line {body['line']}")
    if error.text is None and body.get("column_name"):
        place.append(f"column {body['column_name']}")
    return f"{', '.join(place)}: "
