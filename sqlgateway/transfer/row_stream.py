"""A sink that writes rows in one format as they arrive."""

from collections.abc import Sequence
from typing import Final

from django.conf import settings
from psycopg.abc import Buffer
from psycopg.pq.abc import PGresult

from sqlgateway.errors import ResultTooWide
from sqlgateway.formats import row_writer
from sqlgateway.formats.results import columns_of, split_tag
from sqlgateway.formats.row_writer import RowWriter
from sqlgateway.formats.values import values_of
from sqlgateway.pg.tenant_connection import TenantConnection
from sqlgateway.run import lookups

# Rows are written in batches: large enough for fast code in C, small enough to use little memory.
BATCH_ROWS: Final = 512
BATCH_BYTES: Final = 256 * 1024
# The size of a write to the client, so that few system calls are needed.
PIECE_BYTES: Final = 64 * 1024


class RowStream:
    """Writes one statement's rows as they arrive.

    takes_copy: the statement is a COPY, whose lines are the body.
    has_lines: the COPY has begun.
    """

    def __init__(self, writer: RowWriter, *, takes_copy: bool = False) -> None:
        self._writer = writer
        self._values: list[list[bytes | None]] = []
        self._pending_rows = self._pending_bytes = 0
        self._parts: list[bytes] = []
        self._part_bytes = 0
        self._has_started = False
        self._given_rows = 0
        self.takes_copy = takes_copy
        self.has_lines = False
        self.command = ""
        self.row_count = 0
        self.size_bytes = 0

    @property
    def is_full(self) -> bool:
        """False: a stream has no cap on rows."""
        return False

    def start(self, result: PGresult, session: TenantConnection) -> None:
        """Write the columns; the tenant's own types are looked up on another connection.

        Raises ResultNotText.
        """
        columns = columns_of(result)
        unknown = row_writer.unknown_oids(columns, session.column_types)
        if unknown:
            lookups.look_up_types_beside(session, unknown)
        self._values = [[] for _ in columns]
        self._write(
            self._writer.start(columns, row_writer.column_types_of(columns, session.column_types))
        )
        self._has_started = True

    def add(self, result: PGresult, session: TenantConnection) -> None:
        """Add a chunk's rows to the batch, and write the batch if it is large enough.

        Raises ResultNotText, ResultTooWide.
        """
        for kept, values in zip(self._values, values_of(result), strict=True):
            kept.extend(values)
        self._pending_rows += result.ntuples
        self._pending_bytes += session.last_bytes
        if self._pending_rows >= BATCH_ROWS or self._pending_bytes >= BATCH_BYTES:
            self._write_rows()

    def add_lines(self, lines: Sequence[Buffer]) -> None:
        """Pass on lines of a COPY, unchanged."""
        self.has_lines = True
        self._write(b"".join(lines))

    def end(self, command_tag: str) -> None:
        """Write the rest of the rows."""
        if not (self._has_started or self.has_lines):
            self._write(self._writer.start([], {}))
        self._write_rows()
        self.command, count = split_tag(command_tag)
        self.row_count = self._given_rows if count is None else count

    def complete(self, session: TenantConnection) -> None:
        """Write the end of the body: the transaction is committed."""
        self._write(self._writer.end())

    def _write_rows(self) -> None:
        count, self._pending_rows, self._pending_bytes = self._pending_rows, 0, 0
        if not count:
            return
        self._given_rows += count
        self._write(self._writer.rows(self._values, count))
        self._values = [[] for _ in self._values]

    def _write(self, part: bytes) -> None:
        self._parts.append(part)
        self._part_bytes += len(part)
        self.size_bytes += len(part)
        limit_bytes = settings.SQL.export_limit_bytes
        if limit_bytes and self.size_bytes > limit_bytes:
            raise ResultTooWide(f"A streamed result may have {limit_bytes} bytes.")

    def take(self, *, at_least_bytes: int = PIECE_BYTES) -> bytes:
        """Return the bytes written since the last call; nothing if there are fewer than this."""
        if self._part_bytes < at_least_bytes:
            return b""
        piece = b"".join(self._parts)
        self._parts, self._part_bytes = [], 0
        return piece
