"""The columns of a CSV body: read the names in its first line, leave out values of columns.

A body is hostile and of any length: only its first line is held in memory.
"""

import csv
import re
from collections.abc import Collection, Iterator
from itertools import chain
from typing import Final

from common.errors import InvalidRequest
from sqlgateway.errors import SqlRefused

# Spreadsheet programs write it before the first name.
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
# A table has at most 1600 columns with names of 63 bytes. csv reads no longer field.
MAX_HEADER_BYTES: Final = 128 * 1024
# A line ends outside of quotes; \r alone may be the first half of \r\n.
LINE: Final = re.compile(rb'(?:[^"\r\n]++|"[^"]*+")*+(?:\r\n|\r(?!\Z)|\n)')
# PostgreSQL's bad_copy_file_format.
BAD_COPY_FILE: Final = "22P04"


def split_header(pieces: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return the first line of a body with its end, and the rest of the body.

    Raises InvalidRequest for an empty body, and for a line that is too long.
    """
    begun = b""
    for piece in pieces:
        begun += piece
        text = begun.removeprefix(BYTE_ORDER_MARK)
        if found := LINE.match(text):
            return found[0], chain([text[found.end() :]], pieces)
        if len(begun) > MAX_HEADER_BYTES:
            raise InvalidRequest(f"The first line has more than {MAX_HEADER_BYTES} bytes.")
    text = begun.removeprefix(BYTE_ORDER_MARK)
    if not text:
        raise InvalidRequest("The body is empty: its first line has to name the columns.")
    return text, iter(())


def names_in(header: bytes, delimiter: str) -> list[str]:
    """Return the names in a first line. Raises InvalidRequest."""
    try:
        (names,) = csv.reader([header.decode().rstrip("\r\n")], delimiter=delimiter)
    except (UnicodeDecodeError, ValueError, csv.Error) as exc:
        raise InvalidRequest("The first line is not CSV in UTF-8.") from exc
    return names


def without_values(
    pieces: Iterator[bytes], dropped: Collection[int], count: int, *, delimiter: str
) -> Iterator[bytes]:
    """Yield a body without the values of some columns; the lines keep their numbers.

    dropped: places of columns, from 0. count: the number of columns.
    Raises SqlRefused for a line with more or fewer values, because its values may be those of other
    columns, and for a quote that is not closed, which may be in a column that is left out.
    """
    return _Values(dropped, count, delimiter.encode()).kept(pieces)


class _Values:
    """Where in a body the last piece ended. A quote begins and ends anywhere, as PostgreSQL reads.

    at: the place of the present value in its row. line: the number of the present line.
    """

    def __init__(self, dropped: Collection[int], count: int, delimiter: bytes) -> None:
        self._kept = [place not in dropped for place in range(count)]
        self._first = self._kept.index(True)
        self._delimiter = delimiter
        mark = re.escape(delimiter)
        self._token = re.compile(rb'"|%b|\r\n|\r|\n|[^"\r\n%b]++' % (mark, mark))
        self._at, self._line = 0, 1
        self._is_quoted = self._has_begun = False

    def kept(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        rest = b""
        for piece in pieces:
            text = rest + piece
            # \n may follow.
            rest = b"\r" if text.endswith(b"\r") else b""
            yield b"".join(self._tokens(text.removesuffix(rest)))
        yield b"".join(self._tokens(rest))
        if self._is_quoted:
            raise _refused("A quoted value has no end.", self._line)
        if self._has_begun:
            self._end_row()

    def _tokens(self, text: bytes) -> Iterator[bytes]:
        for token in self._token.findall(text):
            is_line_end = token[0] in b"\r\n"
            if is_line_end and not self._is_quoted:
                self._end_row()
                self._line += 1
                yield token
                continue
            self._has_begun = True
            is_between = token == self._delimiter and not self._is_quoted
            self._at += is_between
            self._line += is_line_end
            self._is_quoted ^= token == b'"'
            if self._is_kept() and not (is_between and self._at == self._first):
                yield token

    def _is_kept(self) -> bool:
        return self._at < len(self._kept) and self._kept[self._at]

    def _end_row(self) -> None:
        """Begin the next row. Raises SqlRefused for another number of values."""
        if self._at + 1 != len(self._kept):
            sentence = f"The row has {self._at + 1} values in place of {len(self._kept)}."
            raise _refused(sentence, self._line)
        self._at, self._has_begun = 0, False


def _refused(sentence: str, line: int) -> SqlRefused:
    """Return the error with the members that PostgreSQL's own about a body has."""
    extra = {"sqlstate": BAD_COPY_FILE, "message": sentence, "retryable": False, "line": line}
    return SqlRefused(sentence, extra=extra)
