"""The only place that writes to the terminal: progress, warnings and the children's log lines."""

import os
import sys
from typing import Final, TextIO

PALETTE: Final = (36, 33, 35, 32, 34, 96, 93, 95)
RED: Final = 31
BOLD: Final = 1
NAME_WIDTH: Final = 9
CONTROL_CHARACTERS: Final = {
    code: "\N{REPLACEMENT CHARACTER}"
    for code in (*range(32), *range(127, 160))
    if code != ord("\t")
}


def has_colours(stream: TextIO) -> bool:
    """True if the stream is a terminal and NO_COLOR is unset. Source: no-color.org."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


def paint(text: str, code: int, *, stream: TextIO) -> str:
    """Return the text in an SGR colour, or unchanged without colours."""
    return f"\x1b[{code}m{text}\x1b[0m" if has_colours(stream) else text


def say(text: str = "") -> None:
    """Print one line of progress for the person who started the command."""
    _write(sys.stdout, text)


def say_bold(text: str) -> None:
    """Print a line of progress in bold."""
    _write(sys.stdout, paint(text, BOLD, stream=sys.stdout))


def warn(text: str) -> None:
    """Print a warning on standard error, in red."""
    _write(sys.stderr, paint(text, RED, stream=sys.stderr))


def printable(line: str) -> str:
    """Replace control characters: a child's log may quote untrusted input."""
    return line.rstrip().translate(CONTROL_CHARACTERS)


def log_line(name: str, text: str, *, colour: int = 0) -> None:
    """Print a child's line under its name; colour picks from a palette, modulo its length."""
    prefix = paint(f"{name:<{NAME_WIDTH}} |", PALETTE[colour % len(PALETTE)], stream=sys.stdout)
    _write(sys.stdout, f"{prefix} {text}")


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text + "\n")
        stream.flush()
    except OSError:
        # The terminal was closed (closed window, broken pipe). Ignored, because the children must
        # still be stopped in order.
        return
