"""From PostgreSQL's text to JSON, one column at a time and never through Python's values.

An encoder takes a column's values (None is NULL) and returns ``(fragments, is_quoted)``: each
fragment is a whole JSON value, or with ``is_quoted`` the inside of a string, so that the quotes
are part of the row's template. Whole columns are checked with one call of C where possible, which
is much faster than a loop over the values.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

import orjson

Values = Sequence[bytes | None]
Encoded = tuple[Sequence[bytes], bool]
Encoder = Callable[[Values], Encoded]

NULL: Final = b"null"
# Characters that JSON escapes; a column without any is copied unchanged.
ESCAPED: Final = bytes([*range(32), 0x22, 0x5C])
BOOLS: Final = {b"t": b"true", b"f": b"false", None: NULL}
# IEEE 754 doubles hold every whole number up to here (RFC 8259 §6).
MAX_SAFE: Final = 2**53 - 1
SAFE_DIGITS: Final = 15
TIMESTAMP: Final = re.compile(
    rb"(\d{4,}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)(?:([+-]\d\d)(:[\d:]+)?)?( BC)?"
)


def text(values: Values) -> Encoded:
    """Strings."""
    if None not in values:
        blob = b"".join(values)  # type: ignore[arg-type]  # no None among them
        if len(blob.translate(None, ESCAPED)) == len(blob):
            return values, True  # type: ignore[return-value]  # no None among them
    return [NULL if value is None else quote(value) for value in values], False


def any_text(values: Values) -> Encoded:
    """Strings in any client encoding."""
    return [NULL if value is None else quote(value) for value in values], False


def quote(value: bytes) -> bytes:
    """Return one JSON string; bytes that are not UTF-8 become replacement characters."""
    return orjson.dumps(value.decode("utf-8", "replace"))


def literal(values: Values) -> Encoded:
    """Values whose text is JSON already: int2, int4, json, jsonb."""
    if None not in values:
        return values, False  # type: ignore[return-value]  # no None among them
    return [NULL if value is None else value for value in values], False


def boolean(values: Values) -> Encoded:
    """True and false."""
    return [BOOLS[value] for value in values], False


def int8(values: Values) -> Encoded:
    """Numbers while a double holds them, else strings."""
    if None not in values and len(max(values, key=len, default=b"")) <= SAFE_DIGITS:  # type: ignore[arg-type]  # no None
        return values, False  # type: ignore[return-value]  # no None among them
    return [_int8(value) for value in values], False


def _int8(value: bytes | None) -> bytes:
    if value is None:
        return NULL
    if len(value) <= SAFE_DIGITS or abs(int(value)) <= MAX_SAFE:
        return value
    return b'"%b"' % value


def number(values: Values) -> Encoded:
    """Floats, and numeric when asked for: numbers, but NaN and the infinities as strings."""
    if None not in values:
        blob = b"".join(values)  # type: ignore[arg-type]  # no None among them
        if b"N" not in blob and b"I" not in blob:
            return values, False  # type: ignore[return-value]  # no None among them
    return [_number(value) for value in values], False


def _number(value: bytes | None) -> bytes:
    if value is None:
        return NULL
    return b'"%b"' % value if value[-1:] in b"Ny" else value


def timestamp(values: Values) -> Encoded:
    """ISO 8601 with ``T``; infinities and BC as PostgreSQL's own to_json writes them."""
    if None not in values:
        blob = b"\n".join(values)  # type: ignore[arg-type]  # no None among them
        if blob.count(b" ") == len(values) and b"B" not in blob and b"\\" not in blob:
            return blob.replace(b" ", b"T").split(b"\n"), True
    return _each_timestamp(values)


def timestamptz(values: Values) -> Encoded:
    """ISO 8601 with ``T`` and an offset in hours and minutes."""
    if None not in values:
        blob = b"\n".join([*values, b""])  # type: ignore[list-item]  # no None among them
        if blob.count(b" ") == blob.count(b"+00\n") == len(values):
            blob = blob.replace(b" ", b"T").replace(b"+00\n", b"+00:00\n")
            return blob.split(b"\n")[:-1], True
    return _each_timestamp(values)


def _each_timestamp(values: Values) -> Encoded:
    return [NULL if value is None else quote(_timestamp(value)) for value in values], False


def _timestamp(value: bytes) -> bytes:
    match = TIMESTAMP.fullmatch(value)
    if match is None:
        return value
    day, clock, hours, minutes, era = match.groups()
    offset = b"" if hours is None else hours + (minutes or b":00")
    return day + b"T" + clock + offset + (era or b"")


def array_of(encoder: Encoder) -> Encoder:
    """Return the encoder of arrays whose elements the encoder takes."""

    def array(values: Values) -> Encoded:
        return _arrays(values, encoder), False

    return array


# Structure, a quoted element, or a bare one; PostgreSQL quotes everything ambiguous.
TOKEN: Final = re.compile(rb'[{},]|"(?:[^"\\]|\\.)*"|[^{},"]+', re.DOTALL)
BOUNDS: Final = re.compile(rb"(?:\[-?\d+:-?\d+\])+=")
ESCAPE: Final = re.compile(rb"\\(.)", re.DOTALL)
STRUCTURE: Final = {b"{": b"[", b"}": b"]", b",": b","}


def _arrays(values: Values, encoder: Encoder) -> list[bytes]:
    """Encode the elements of all arrays in one call, then restore their brackets."""
    leaves: list[bytes | None] = []
    shapes = [None if value is None else _shape(value, leaves) for value in values]
    encoded, is_quoted = encoder(leaves)
    fragments = iter([b'"%b"' % leaf for leaf in encoded] if is_quoted else encoded)
    return [
        NULL
        if shape is None
        else b"".join([next(fragments) if part is None else part for part in shape])
        for shape in shapes
    ]


def _shape(value: bytes, leaves: list[bytes | None]) -> list[bytes | None]:
    """Return an array's brackets and commas with None for each element, added to ``leaves``."""
    bounds = BOUNDS.match(value)
    shape: list[bytes | None] = []
    for token in TOKEN.findall(value, bounds.end() if bounds else 0):
        structure = STRUCTURE.get(token)
        shape.append(structure)
        if structure is None:
            leaves.append(_leaf(token))
    return shape


def _leaf(token: bytes) -> bytes | None:
    if token[:1] == b'"':
        inside = token[1:-1]
        return ESCAPE.sub(rb"\1", inside) if b"\\" in inside else inside
    return None if token == b"NULL" else token
