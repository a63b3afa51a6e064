"""What the command says of an error, and the exit status that it ends with.

0 done, 1 refused by the platform, 2 called wrongly, 3 no answer, 4 not signed in, 5 done but the
answer cannot be shown, 130 interrupted.
"""

from typing import Optional

import zonal
from zonal.cli.configuration import NotSignedInError, UsageError

REFUSED, CALLED_WRONGLY, NO_ANSWER, NOT_SIGNED_IN, UNREADABLE, INTERRUPTED = 1, 2, 3, 4, 5, 130
UNREACHABLE = (zonal.ConnectionFailedError, zonal.StreamCutError, zonal.UnexpectedAnswerError)


def status_of(exc: BaseException) -> int:
    """Return the exit status of an error."""
    if isinstance(exc, (NotSignedInError, zonal.AuthenticationError)):
        return NOT_SIGNED_IN
    if isinstance(exc, zonal.UnreadableAnswerError):
        return UNREADABLE
    if isinstance(exc, UNREACHABLE):
        return NO_ANSWER
    if isinstance(exc, UsageError):
        return CALLED_WRONGLY
    return REFUSED


def message_of(exc: BaseException, text: Optional[str] = None) -> str:
    """Return a sentence for the person; text: the SQL that an error's place is shown in."""
    if isinstance(exc, zonal.SqlError):
        return "\n".join(_of_sql(exc, text))
    if isinstance(exc, zonal.ProblemError):
        said = str(exc)
        if exc.code in {"session_revoked", "token_expired", "token_invalid"}:
            return f"{said}. Run `zonal login`."
        return said
    return str(exc)


def _of_sql(error: zonal.SqlError, text: Optional[str]) -> list[str]:
    lines = [f"{error.sqlstate}: {error.detail or error.title}"]
    sent = (text or "").split("\n")
    if text and error.line and error.column and error.line <= len(sent):
        lines += [sent[error.line - 1], " " * (error.column - 1) + "^"]
    if error.hint:
        lines.append(f"Hint: {error.hint}")
    return lines
