"""Text for people: tables that fit, and never a character that a terminal obeys."""

import json
import os
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timezone
from typing import Any, Optional, TextIO

# How NULL is shown, as in psql with a setting that most people use.
NULL = "∅"


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
        return NULL
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
    if text == safe(text) == text.strip() and text != NULL and not text.startswith("E'"):
        return text
    quoted = text.replace("\\", "\\\\").replace("'", "\\'")
    return "E'" + "".join(e if _is_harmless(e) else _json_escaped(e) for e in quoted) + "'"


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, out: TextIO) -> None:
    """Write an aligned table; on a terminal its cells are cut so that a row fits a line."""
    cells = [[cell(value) for value in row] for row in rows]
    names = [safe(name) for name in columns]
    widths = [
        max([_width(name), *(_width(row[index]) for row in cells)])
        for index, name in enumerate(names)
    ]
    if out.isatty():
        widths = _fitting(widths, shutil.get_terminal_size().columns)
    numeric = [
        bool(cells) and all(_is_number(row[index]) for row in cells) for index in range(len(names))
    ]
    write(_line(names, widths, [False] * len(names)), out)
    write("  ".join("─" * width for width in widths), out)
    for row in cells:
        write(_line(row, widths, numeric), out)


def fields(pairs: Sequence[tuple[str, Any]], *, out: TextIO) -> None:
    """Write names and values, one pair a line."""
    width = max((_width(name) for name, _ in pairs), default=0)
    for name, value in pairs:
        write(f"{name}{' ' * (width - _width(name))}  {cell(value)}", out)


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
    return character.isprintable() or unicodedata.category(character) == "Zs"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _json_escaped(character: str) -> str:
    text = json.dumps(character)[1:-1]
    return "\\u007f" if text == "\x7f" else text


def _iso(value: Any) -> str:
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    raise TypeError(type(value).__name__)


def _width(text: str) -> int:
    """Return the columns that a terminal needs for text."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) > 0 for character in text)


def _is_number(text: str) -> bool:
    return text == NULL or text.lstrip("-").replace(".", "", 1).isdigit()


def _fitting(widths: list[int], columns: int) -> list[int]:
    """Return widths of a row that fits, the widest made narrower first, to 8 at least."""
    fitted = list(widths)
    while sum(fitted) + 2 * (len(fitted) - 1) > columns and max(fitted, default=0) > 8:
        fitted[fitted.index(max(fitted))] -= 1
    return fitted


def _line(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    parts = []
    for text, width, is_right in zip(cells, widths, numeric):
        shown = _cut(text, width)
        space = " " * (width - _width(shown))
        parts.append(space + shown if is_right else shown + space)
    return "  ".join(parts).rstrip()


def _cut(text: str, width: int) -> str:
    if _width(text) <= width:
        return text
    shown = text
    while _width(shown) > width - 1:
        shown = shown[:-1]
    return f"{shown}…"
