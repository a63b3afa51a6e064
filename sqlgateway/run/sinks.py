"""The interface of objects that receive the rows of a request."""

from collections.abc import Sequence
from typing import Protocol

from psycopg.abc import Buffer
from psycopg.pq.abc import PGresult

from sqlgateway.pg.tenant_connection import TenantConnection


class Sink(Protocol):
    """Receives each statement's columns, its rows chunk by chunk, and its end.

    The calls for a statement are ``start``, ``add`` for each chunk, ``end``; a statement without
    rows has only ``end``. A chunk is valid only during the call: libpq frees it afterwards. Any
    method may raise a PlatformError, which ends the request.

    Flow control: the execution yields after each chunk, and does not read further until the caller
    resumes it.
    """

    @property
    def takes_copy(self) -> bool:
        """True if the sink takes the lines of a COPY TO STDOUT; otherwise COPY is refused."""

    @property
    def is_full(self) -> bool:
        """True if the running statement's further rows are not needed."""

    def start(self, result: PGresult, session: TenantConnection) -> None:
        """Read a statement's columns from its first chunk."""

    def add(self, result: PGresult, session: TenantConnection) -> None:
        """Take a chunk's rows, including the first chunk's; also called while ``is_full``."""

    def add_lines(self, lines: Sequence[Buffer]) -> None:
        """Take lines of a COPY TO STDOUT."""

    def end(self, command_tag: str) -> None:
        """End a statement. command_tag: such as ``INSERT 0 5``; empty for a cancelled query."""

    def complete(self, session: TenantConnection) -> None:
        """Finish the answer: all statements have run, and their transaction has ended.

        The connection is free for lookups. Not called for a request that failed.
        """
