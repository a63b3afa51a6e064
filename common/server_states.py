"""SQLSTATEs by which PostgreSQL says that it cannot do a statement now, whatever the statement is.

Neither the caller nor the code is at fault, and the same statement works later, or on another
server: web and brain answer 503, the task worker tries again, and commands say so.
Source: PostgreSQL, appendix A.
"""

import select
from typing import Any, Final

import psycopg
from django.db import OperationalError

# read_only_sql_transaction: a former leader, a standby before its promotion, a fenced server.
READ_ONLY: Final = "25006"
# Connection exceptions; disk, memory or connections used up; a server that stops or starts, or that
# ended the connection.
CLASSES: Final = ("08", "53", "57P")


class CommitLost(OperationalError):
    """The connection was lost at a commit: whether it took place is unknown."""


def is_of_server(sqlstate: str | None) -> bool:
    """True if the server's state was the reason."""
    return sqlstate is not None and (sqlstate == READ_ONLY or sqlstate.startswith(CLASSES))


def is_ended(connection: psycopg.BaseConnection[Any]) -> bool:
    """True if an idle connection was closed: only then is it readable.

    Does not ask the server, because every use would have to wait for the answer.
    """
    if connection.closed:
        return True
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))
