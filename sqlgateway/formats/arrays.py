"""Convert arrays from PostgreSQL's text to JSON, in bounded memory.

An array of 8 MiB has up to four million elements; as Python objects they would take a hundred times
this size. Most arrays are converted by replacing characters in the whole text. Others are converted
in small groups of elements; size and deadline are checked after each group.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from typing import Final

from sqlgateway.formats import encoders
from sqlgateway.formats.encoders import ESCAPED, NULL, Check, Encoded, Encoder, Values

# Structure, a quoted element, or an unquoted one; PostgreSQL quotes ambiguous elements. Possessive,
# because a long element must not fill the stack of the regular expression. An element without its
# quote, as in another client encoding, extends to the end: no text is read twice.
TOKEN: Final = rb'[{}%b]|"(?:[^"\\]++|\\(?:.|\Z))*+(?:"|\Z)|[^{}%b"]++'
COMMA: Final = b","
GROUP_TOKENS: Final = 4096
BOUNDS: Final = re.compile(rb"(?:\[-?\d+:-?\d+\])+=")
STRUCTURE: Final = {b"{": b"[", b"}": b"]", b",": b","}
BRACKETS: Final = bytes.maketrans(b"{}", b"[]")
# Pairs of tokens that are not valid in an array; ``x`` is an element.
IMPOSSIBLE: Final = (b"xx", b"x{", b"{,", b",,", b",}", b"}x", b"}{")
NUMBERS: Final = b"0123456789+-.e,{}NUL"
BOOLEANS: Final = b"tf,{}NUL"
LONG_NUMBER: Final = re.compile(rb"\d{16}")
MINUS_ZERO: Final = re.compile(rb"[{,]-0[,}]")

Whole = Callable[[bytes, Check], bytes | None]


class MalformedArray(Exception):
    """The text is not an array, for example because of another client encoding."""


def array_of(encoder: Encoder, check: Check, *, delimiter: bytes = COMMA) -> Encoder:
    """Return the encoder of arrays. encoder: of their elements.

    check: called repeatedly during the conversion of an array.
    """
    whole = WHOLE.get(encoder, _strings) if delimiter == COMMA else _none

    def array(value: bytes) -> bytes:
        bounds = BOUNDS.match(value)
        inside = value[bounds.end() :] if bounds else value
        done = whole(inside, check)
        if done is not None:
            return done
        try:
            return b"".join(_groups(inside, encoder, check, delimiter=delimiter))
        except MalformedArray:
            return encoders.quote(value, check)

    def array_column(values: Values) -> Encoded:
        return [NULL if value is None else array(value) for value in values], b"", b""

    return array_column


@cache
def _token(delimiter: bytes) -> re.Pattern[bytes]:
    mark = re.escape(delimiter)
    return re.compile(TOKEN % (mark, mark), re.DOTALL)


# --- the whole text -------------------------------------------------------------------------------


def _none(_value: bytes, _check: Check) -> None:
    """Convert no whole text."""


def _numbers(value: bytes, _check: Check) -> bytes | None:
    if value.translate(None, NUMBERS):
        return None
    return value.translate(BRACKETS).replace(b"NULL", NULL)


def _floats(value: bytes, check: Check) -> bytes | None:
    return None if MINUS_ZERO.search(value) else _numbers(value, check)


def _long_numbers(value: bytes, check: Check) -> bytes | None:
    return None if LONG_NUMBER.search(value) else _numbers(value, check)


def _booleans(value: bytes, check: Check) -> bytes | None:
    if value.translate(None, BOOLEANS):
        return None
    check(len(value) + 3 * value.count(b"t") + 4 * value.count(b"f"))
    value = value.translate(BRACKETS).replace(b"NULL", NULL)
    return value.replace(b"f", b"false").replace(b"t", b"true")


def _strings(value: bytes, check: Check) -> bytes | None:
    """Convert one dimension of elements that PostgreSQL did not need to quote."""
    if value.count(b"{") != 1 or value.count(b"}") != 1 or value[-1:] != b"}" or value == b"{}":
        return None
    if len(value.translate(None, ESCAPED)) != len(value):
        return None
    check(len(value) + 2 * value.count(b","))
    elements = value[1:-1].replace(b",", b'","')
    return b'["%b"]' % elements if b"NULL" not in value else _with_nulls(elements)


def _with_nulls(elements: bytes) -> bytes:
    return (b'["%b"]' % elements).replace(b'"NULL"', NULL)


# By the encoder of elements; elements of arrays of timestamps are nearly always quoted.
WHOLE: Final[dict[Encoder, Whole]] = {
    encoders.literal: _numbers,
    encoders.number: _floats,
    encoders.json: _numbers,
    encoders.int8: _long_numbers,
    encoders.boolean: _booleans,
    encoders.timestamp: _none,
    encoders.timestamptz: _none,
}


# --- in groups of elements ------------------------------------------------------------------------


def _groups(value: bytes, encoder: Encoder, check: Check, *, delimiter: bytes) -> Iterator[bytes]:
    """Yield the JSON of an array in pieces of some thousand elements.

    Raises MalformedArray, SizeLimitExceeded by ``check``.
    """
    tokens = (match.group() for match in _token(delimiter).finditer(value))
    # An element that is a comma becomes a quoted one.
    others = {delimiter: COMMA, COMMA: b'","'} if delimiter != COMMA else {}
    shape = _Shape()
    size = read = 0
    while group := list(islice(tokens, GROUP_TOKENS)):
        read += sum(map(len, group))
        if others:
            group = [others.get(token, token) for token in group]
        shape.add(group)
        part = _encode(group, encoder)
        size += len(part)
        check(size)
        yield part
    if read != len(value) or not shape.is_closed:
        raise MalformedArray


def _encode(group: list[bytes], encoder: Encoder) -> bytes:
    """Encode the elements of a group in one call, then put them between their brackets."""
    leaves = [_leaf(token) for token in group if token not in STRUCTURE]
    encoded, before, after = encoder(leaves)
    fragments = iter([before + leaf + after for leaf in encoded] if before else encoded)
    return b"".join([STRUCTURE.get(token) or next(fragments) for token in group])


def _leaf(token: bytes) -> bytes | None:
    if token[:1] != b'"':
        return None if token == b"NULL" else token
    inside = token[1:-1]
    if b"\\" not in inside:
        return inside
    # PostgreSQL's text does not contain NUL, which replaces escaped backslashes here.
    return inside.replace(b"\\\\", b"\0").replace(b"\\", b"").replace(b"\0", b"\\")


class _Shape:
    """Checks the brackets of an array."""

    def __init__(self) -> None:
        self._last = b""
        self._depth = 0
        self._has_begun = False

    @property
    def is_closed(self) -> bool:
        """True if every bracket was closed."""
        return self._last == b"}" and self._depth == 0

    def add(self, group: list[bytes]) -> None:
        """Check the next tokens.

        Raises MalformedArray for invalid pairs of tokens, and for tokens after the end.
        """
        if not self._has_begun and group[0] != b"{":
            raise MalformedArray
        marks = self._last + b"".join([t if t in STRUCTURE else b"x" for t in group])
        if any(pair in marks for pair in IMPOSSIBLE):
            raise MalformedArray
        for mark in marks[len(self._last) :].translate(None, b"x,"):
            if self._depth == 0 and self._has_begun:
                raise MalformedArray
            self._has_begun = True
            self._depth += 1 if mark == b"{"[0] else -1
        if self._depth == 0 and marks[-1:] != b"}":
            raise MalformedArray
        self._last = marks[-1:]
