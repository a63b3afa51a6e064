"""Copy tenants' databases: move, clone, dump and restore them.

A tenant's database is hostile input: none of its code runs as a superuser. A role that exists for
this copy only reads it (reading.py), and the target's own admin role writes it (programs.py). The
administrator only sets owners and privileges (privileges.py), which runs no code of a tenant.

verified_copy.py copies one database into another, and compares the two.
"""


class CopyFailed(Exception):
    """A copy is incomplete or differs. The message is for operators.

    reason: a sentence that the tenant may read. If there is one, another attempt would fail in the
    same way.
    """

    def __init__(self, message: str, *, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class CopyTooSlow(CopyFailed):
    """A copy has reached its deadline."""


class ProgramsMissing(CopyFailed):
    """This machine has no pg_dump and pg_restore that fit a server."""

    def __init__(self, major: int, refused: str = "") -> None:
        super().__init__(
            f"There are no pg_dump and pg_restore for a server of PostgreSQL {major}.{refused}"
            f" Install its client programs, or set ZPG_BINDIR to their folder.",
            reason="The platform lacks the programs that copy databases: tell its operator.",
        )


def reason_for_tenant(error: Exception) -> str:
    """Return why a copy failed that ended in ``error``, without the names of servers and roles."""
    cause = error if isinstance(error, CopyFailed) else error.__cause__
    reason = cause.reason if isinstance(cause, CopyFailed) else ""
    return reason or "A server was not available, or the copy differed."
