"""The JSON answer: a sink that collects the rows up to the limits, and its rendering."""

from collections.abc import Sequence
from typing import Any, Final

import orjson
from django.conf import settings
from psycopg.abc import Buffer
from psycopg.pq.abc import PGresult

from sqlgateway.formats.results import Collector, ResponseBudget, Statement
from sqlgateway.pg.tenant_connection import TenantConnection
from sqlgateway.run import lookups
from sqlgateway.run.requests import SqlRequest

NOTHING: Final = Statement()


class JsonSink:
    """Collects statements' results.

    statements: set by ``complete``. truncated: rows or whole results are missing.
    """

    def __init__(self, request: SqlRequest) -> None:
        self._request = request
        self._budget = ResponseBudget(request.max_bytes)
        self._collector: Collector | None = None
        self._finished: list[tuple[Collector, str]] = []
        self._ended = self._dropped = 0
        self.statements: list[Statement] = []

    @property
    def takes_copy(self) -> bool:
        """False: the lines of a COPY are not JSON."""
        return False

    @property
    def is_full(self) -> bool:
        """True if the running statement reached a limit."""
        return self._collector is not None and self._collector.is_full

    @property
    def truncated(self) -> bool:
        """True if rows or whole results are missing."""
        return self._dropped > 0 or any(statement.truncated for statement in self.statements)

    @property
    def row_count(self) -> int:
        """Rows that the last statement returned or changed."""
        return self.statements[-1].row_count if self.statements else 0

    @property
    def size_bytes(self) -> int:
        """Size of all rows as JSON."""
        return sum(statement.size_bytes for statement in self.statements)

    def start(self, result: PGresult, session: TenantConnection) -> None:
        """Read a statement's columns."""
        self._budget.deadline = session.deadline
        self._collector = self._new_collector()
        self._collector.start(result, session.column_types)

    def add(self, result: PGresult, session: TenantConnection) -> None:
        """Collect a chunk's rows, as many as fit."""
        if session.on_held is not None:
            encoded_bytes = self._request.max_bytes - self._budget.bytes_left
            session.on_held(encoded_bytes + self._budget.unencoded_bytes)
        if self._collector is not None:
            self._collector.add(result, held_bytes=session.last_bytes)

    def add_lines(self, lines: Sequence[Buffer]) -> None:
        """Take nothing: COPY is refused."""

    def end(self, command_tag: str) -> None:
        """End a statement. The first ones and the last one are reported."""
        collector = self._collector or self._new_collector()
        # Before the commit, so that a statement whose result cannot be encoded is rolled back.
        collector.encode()
        self._finished.append((collector, command_tag))
        self._collector = None
        self._ended += 1
        if len(self._finished) > settings.SQL.max_statements:
            dropped, _ = self._finished.pop(-2)
            dropped.drop()
            self._dropped += 1

    def complete(self, session: TenantConnection) -> None:
        """Look up unknown types' names, then encode the rest; a second call does nothing."""
        if self.statements:
            return
        unknown = set[int]().union(*(collector.unknown for collector, _ in self._finished))
        if unknown:
            lookups.look_up_types(session, unknown)
        self.statements = [
            collector.finish(tag, session.column_types) for collector, tag in self._finished
        ]
        for sql_text, statement in zip(self._request.texts, self.statements, strict=False):
            if sql_text.is_explained and statement.batches:
                statement.plan = _plan(statement.batches[0])

    def _new_collector(self) -> Collector:
        """Return the collector of the next statement; each of ``queries`` is one statement."""
        index = self._ended if self._request.is_batch else 0
        return Collector(self._budget, self._request.texts[index].form)


def _plan(row: bytes) -> bytes:
    """Return the only value of a row: the plan as PostgreSQL wrote it."""
    if row.startswith(b"["):
        return row[1:-1]
    return row.partition(b":")[2][:-1]


def render(
    sink: JsonSink, notices: Sequence[dict[str, str]], *, elapsed_ms: float, request_id: str
) -> bytes:
    """Return the answer: the last statement's members, and ``results`` if there are several."""
    statements = sink.statements or [NOTHING]
    last = statements[-1]
    # A client that reads only these members must see that results are incomplete.
    parts = [b"{", *last.members(is_whole=not sink.truncated)]
    if len(statements) > 1:
        parts.append(b',"results":[')
        for number, statement in enumerate(statements):
            parts += [b",{" if number else b"{", *statement.members(), b"}"]
        parts.append(b"]")
    stats = {"elapsed_ms": elapsed_ms, "bytes": sink.size_bytes}
    tail: dict[str, Any] = {"notices": notices, "stats": stats, "request_id": request_id}
    parts += [b",", orjson.dumps(tail)[1:]]
    return b"".join(parts)
