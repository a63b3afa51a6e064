"""What takes the rows of a request."""

from collections.abc import Sequence
from typing import Protocol

from psycopg.abc import Buffer
from psycopg.pq.abc import PGresult

from sqlgateway.connection.tenant_connection import TenantConnection


class Sink(Protocol):
    """Takes each statement's columns, its rows chunk by chunk, and its end.

    The calls for one statement are ``start``, ``add`` for each chunk, ``end``; a statement without
    rows has only ``end``. A chunk is valid during the call only: libpq frees it. The execution
    yields after each chunk, and reads no further until it is resumed; that is the flow control of
    a sink that passes rows on. Any method may raise a PlatformError, which ends the request.
    """

    @property
    def takes_copy(self) -> bool:
        """True if the lines of a COPY TO STDOUT are the rows; otherwise COPY is refused."""

    @property
    def is_full(self) -> bool:
        """True if the running statement's further rows are not needed."""

    def start(self, result: PGresult, session: TenantConnection) -> None:
        """Read a statement's columns from its first chunk."""

    def add(self, result: PGresult, session: TenantConnection) -> None:
        """Take a chunk's rows, the first chunk's as well; called also while ``is_full``."""

    def add_lines(self, lines: Sequence[Buffer]) -> None:
        """Take lines of a COPY TO STDOUT."""

    def end(self, command_tag: str) -> None:
        """End a statement; the tag is as ``INSERT 0 5``, empty for a query that was cut."""

    def complete(self, session: TenantConnection) -> None:
        """Finish the answer: all statements have run, and their transaction has ended.

        The connection is free for lookups. Not called for a request that failed.
        """
