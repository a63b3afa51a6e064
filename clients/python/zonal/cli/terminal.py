"""Text for people: tables that fit, and never a character that a terminal obeys."""

import functools
import json
import os
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, timezone
from typing import Any, Optional, TextIO

# Wider than any row; a table in a file is not folded.
UNLIMITED = 2**31


def safe(text: str) -> str:
    """Return text in which control and direction characters are escaped.

    Data is other people's: an escape sequence in it could rewrite what the terminal shows.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character if _is_harmless(character) else _escaped(character) for character in text
    )


def cell(value: Any) -> str:
    """Return a value as tables show it."""
    if value is None:
        return null()
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%SZ")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value):
        return safe(", ".join(value))
    if isinstance(value, (dict, list)):
        # As PostgreSQL prints it.
        return safe(json_text(value))
    return safe(str(value))


def null() -> str:
    """Return how NULL is shown, as in psql with a setting that most people use."""
    return "∅" if _can_show("∅") else "(null)"


def moment(seconds: Optional[int]) -> Optional[datetime]:
    """Return Unix seconds as a time."""
    return None if seconds is None else datetime.fromtimestamp(seconds, timezone.utc)


def json_text(value: Any) -> str:
    """Return JSON on one line; times in ISO 8601."""
    return safe_json(json.dumps(value, ensure_ascii=False, default=_iso))


def safe_json(text: str) -> str:
    """Return JSON in which control and direction characters are escaped."""
    if text.isascii() and text.isprintable():
        return text
    # A tab is a blank between values; in them it is escaped already.
    return "".join(
        each if each == "\t" or _is_harmless(each) else _json_escaped(each) for each in text
    )


def literal(text: str) -> str:
    """Return text as it is, or as PostgreSQL's E'…' where it would look like another text."""
    if text == safe(text) == text.strip() and text != null() and not text.startswith("E'"):
        return text
    quoted = text.replace("\\", "\\\\").replace("'", "\\'")
    return "E'" + "".join(e if _is_harmless(e) else _json_escaped(e) for e in quoted) + "'"


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, out: TextIO) -> None:
    """Write an aligned table; on a terminal its cells are folded so that a row fits the width."""
    from rich import box, console, table, text  # noqa: PLC0415 - most commands need none

    cells = [[cell(value) for value in row] for row in rows]
    rule = "─" if _can_show("─") else "-"
    shown = table.Table(
        box=box.Box(f"    \n    \n {rule}  \n" + "    \n" * 5, ascii=rule == "-"),
        show_edge=False,
        pad_edge=False,
        header_style="",
    )
    for index, name in enumerate(columns):
        is_numeric = bool(cells) and all(_is_number(row[index]) for row in cells)
        shown.add_column(
            text.Text(safe(name)), justify="right" if is_numeric else "left", overflow="fold"
        )
    for row in cells:
        shown.add_row(*map(text.Text, row))
    columns_of_out = shutil.get_terminal_size().columns if out.isatty() else UNLIMITED
    writer = console.Console(
        file=out, width=columns_of_out, color_system=None, legacy_windows=False
    )
    with writer.capture() as captured:
        writer.print(shown)
    out.writelines(f"{line.rstrip()}\n" for line in captured.get().splitlines())


@contextmanager
def progress(label: str, total: Optional[int] = None) -> Iterator[Callable[[int], None]]:
    """Yield a function that shows how many bytes are done, at a terminal, until the block ends."""
    if not sys.stderr.isatty():
        yield lambda _count: None
        return
    from rich import console  # noqa: PLC0415 - as above
    from rich import progress as bars  # noqa: PLC0415 - as above

    shown = bars.Progress(
        bars.TextColumn("{task.description}", markup=False),
        bars.BarColumn(),
        bars.DownloadColumn(binary_units=True),
        bars.TransferSpeedColumn(),
        console=console.Console(stderr=True),
        transient=True,
    )
    with shown:
        task = shown.add_task(safe(label), total=total)
        yield lambda count: shown.update(task, completed=count)


def fields(pairs: Sequence[tuple[str, Any]], *, out: TextIO) -> None:
    """Write names and values, one pair a line."""
    widest = max((width(name) for name, _ in pairs), default=0)
    for name, value in pairs:
        write(f"{name}{' ' * (widest - width(name))}  {cell(value)}", out)


def write(text: str, out: Optional[TextIO] = None) -> None:
    """Write a line."""
    (out or sys.stdout).write(f"{text}\n")


def say(text: str) -> None:
    """Write lines beside the output, for the person."""
    for line in text.split("\n"):
        sys.stderr.write(f"{safe(line)}\n")


def bold(text: str, out: TextIO) -> str:
    """Return text, bold on a terminal."""
    return f"\033[1m{text}\033[0m" if out.isatty() and "NO_COLOR" not in os.environ else text


def _is_harmless(character: str) -> bool:
    is_obeyed = not character.isprintable() and unicodedata.category(character) != "Zs"
    return not is_obeyed and _can_show(character)


def _can_show(character: str) -> bool:
    """True if the output's code page has a character: Windows has others than UTF-8."""
    encoding = sys.stdout.encoding or "utf-8"
    return character.isascii() or _is_encodable(character, encoding)


@functools.lru_cache(maxsize=4096)
def _is_encodable(character: str, encoding: str) -> bool:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _json_escaped(character: str) -> str:
    # Beyond U+FFFF two of them.
    text = json.dumps(character)[1:-1]
    return "\\u007f" if text == "\x7f" else text


def _iso(value: Any) -> str:
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    raise TypeError(type(value).__name__)


def width(text: str) -> int:
    """Return the columns that a terminal needs for text."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) > 0 for character in text)


def _is_number(text: str) -> bool:
    return text == null() or text.lstrip("-").replace(".", "", 1).isdigit()
