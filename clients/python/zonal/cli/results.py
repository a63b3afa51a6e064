"""Results of SQL as tables, CSV or JSON."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import zonal
from zonal.cli import failures, terminal

if TYPE_CHECKING:
    from zonal.types import Result

COUNTED = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE"})


def run(
    client: zonal.Client,
    text: str,
    params: Sequence[str] | None,
    *,
    output: str,
    read_only: bool = False,
) -> None:
    """Run one text and write its result."""
    if output == "csv":
        with client.sql.export(text, params, read_only=read_only) as pieces:
            _write_pieces(pieces)
    elif output == "json":
        _write_json(client, text, params, read_only=read_only)
    else:
        answer = client.sql.query(text, params, rows="arrays", read_only=read_only)
        show(answer)


def show(answer: zonal.SqlAnswer, *, is_expanded: bool = False) -> None:
    """Write the results of an answer as tables."""
    for notice in answer.notices:
        failures.say_notice(notice)
    several: Sequence[Result | zonal.SqlAnswer] = answer.results or [answer]
    for result in several:
        _show_result(result, is_expanded=is_expanded)


def _show_result(result: Result | zonal.SqlAnswer, *, is_expanded: bool) -> None:
    if not result.columns:
        counted = result.command.split(" ")[0] in COUNTED
        terminal.say(f"{result.command} {result.row_count}" if counted else result.command)
        return
    names = [column.name for column in result.columns]
    rows = [[_shown(value) for value in row] for row in result.rows]
    if is_expanded:
        for number, row in enumerate(rows, 1):
            terminal.write(terminal.bold(f"Row {number}", sys.stdout))
            terminal.fields(
                [(terminal.safe(name), value) for name, value in zip(names, row)], out=sys.stdout
            )
    else:
        terminal.table(names, rows, out=sys.stdout)
    count = f"{result.row_count} row{'' if result.row_count == 1 else 's'}"
    more = ", and more: --csv and --json write them all" if result.truncated else ""
    terminal.say(f"({count}{more})")


def _shown(value: Any) -> str | None:
    """Return a value as no other one of its type is shown; None is NULL."""
    if value is None or isinstance(value, str):
        return value if value is None else terminal.literal(value)
    if isinstance(value, bool):
        # As PostgreSQL and psql do: `true` is a value of json.
        return "t" if value else "f"
    return terminal.json_text(value) if isinstance(value, list) else str(value)


def _write_pieces(pieces: Iterator[bytes]) -> None:
    """Write a file as it is; to a terminal without what it would obey."""
    if not sys.stdout.isatty():
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for piece in pieces:
        sys.stdout.write("\n".join(map(terminal.safe, decoder.decode(piece).split("\n"))))


def _write_json(
    client: zonal.Client, text: str, params: Sequence[str] | None, *, read_only: bool
) -> None:
    """Write an array of objects, row by row: it may be larger than memory.

    Each value is the JSON that was sent.
    """
    with client.sql.stream(text, params, read_only=read_only, json="parsed") as rows:
        keys = [terminal.json_text(column.key or column.name) for column in rows.columns]
        separator = "["
        for row in rows.texts():
            members = (f"{key}: {terminal.safe_json(value)}" for key, value in zip(keys, row))
            sys.stdout.write(f"{separator}{{{', '.join(members)}}}")
            separator = ",\n"
        sys.stdout.write("[]\n" if separator == "[" else "]\n")
    for notice in rows.end.notices if rows.end else []:
        failures.say_notice(notice)
