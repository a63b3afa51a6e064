"""Convert PostgreSQL's text to JSON, one column at a time, without Python objects for values.

An encoder gets a column's values (None is NULL; ``values_of`` reads them with one call) and returns
``(fragments, before, after)``. A JSON value is a fragment between ``before`` and ``after``, which
are the same for the whole column, such as quotes. Where possible, a whole column is checked by one
call of a function in C, which is much faster than a loop over the values.

The format of a value is never assumed, because a text can change DateStyle or client_encoding
before its first row. A value in another format than expected is returned as PostgreSQL's text. For
bytes that are not UTF-8, an encoder raises UnicodeDecodeError, or results.py finds them.
"""

import codecs
import re
from collections.abc import Callable, Sequence
from typing import Final

import orjson
from psycopg.adapt import Transformer
from psycopg.pq import Format
from psycopg.pq.abc import PGresult

Values = Sequence[bytes | None]
Encoded = tuple[Sequence[bytes], bytes, bytes]
Encoder = Callable[[Values], Encoded]
# Called with the length of a value's JSON so far; raises SizeLimitExceeded.
Check = Callable[[int], None]
NULL: Final = b"null"
QUOTE: Final = b'"'
MINUS_ZERO: Final = b"-0"
# Characters that JSON escapes; a column without any is copied unchanged.
ESCAPED: Final = bytes([*range(32), 0x22, 0x5C])
BOOLS: Final = {b"t": b"true", b"f": b"false", None: NULL}
BOOL_TEXTS: Final = {b"t": b'"true"', b"f": b'"false"', None: NULL}
# IEEE 754 doubles hold every whole number up to here (RFC 8259 §6).
MAX_SAFE: Final = 2**53 - 1
SAFE_DIGITS: Final = 15
# Longer values are converted in pieces, so that their copies stay short.
PIECE_BYTES: Final = 64 * 1024
TIMESTAMP: Final = re.compile(
    rb"(\d{4,}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)(?:([+-]\d\d)(:[\d:]+)?)?( BC)?"
)
# In some client encodings a backslash can be the last byte of a character.
DOUBTFUL: Final = re.compile(rb"[\x80-\xff]\\")
# The loader of this type in binary format copies any bytes unchanged.
BYTEA_OID: Final = 17


class SizeLimitExceeded(Exception):
    """The conversion of a value takes longer, or its JSON is longer, than the answer allows."""


def unlimited(_size_bytes: int) -> None:
    """Accept any length: a Check for callers that bound values themselves."""


def has_null(values: Values) -> bool:
    """True if a value is NULL. ``all`` is much faster than ``in``, and true for most columns."""
    return not all(values) and None in values


def text_of(check: Check) -> Encoder:
    """Return the encoder of strings."""

    def text(values: Values) -> Encoded:
        if not has_null(values):
            blob = b"".join(values)  # type: ignore[arg-type]  # no None among them
            if len(blob.translate(None, ESCAPED)) == len(blob):
                return values, QUOTE, QUOTE  # type: ignore[return-value]  # no None among them
        return [NULL if value is None else quote(value, check) for value in values], b"", b""

    return text


text: Final = text_of(unlimited)


def quote(value: bytes, check: Check = unlimited) -> bytes:
    """Return one JSON string.

    Raises UnicodeDecodeError for bytes that are not UTF-8, SizeLimitExceeded by ``check``.
    """
    if len(value) <= PIECE_BYTES:
        return orjson.dumps(value.decode())
    decoder = codecs.getincrementaldecoder("utf-8")()
    parts: list[bytes] = []
    size = 0
    for at in range(0, len(value), PIECE_BYTES):
        is_last = at + PIECE_BYTES >= len(value)
        piece = decoder.decode(value[at : at + PIECE_BYTES], is_last)
        parts.append(orjson.dumps(piece)[1:-1])
        size += len(parts[-1])
        check(size)
    return b'"%b"' % b"".join(parts)


def literal(values: Values) -> Encoded:
    """Encode values whose text is JSON: int2, int4."""
    if not has_null(values):
        return values, b"", b""  # type: ignore[return-value]  # no None among them
    return [NULL if value is None else value for value in values], b"", b""


def json(values: Values) -> Encoded:
    """Encode JSON unchanged, but on one line: line breaks outside of strings are whitespace."""
    given = [NULL if value is None else value for value in values]
    blob = b"".join(given)
    if b"\n" in blob or b"\r" in blob:
        given = [value.replace(b"\n", b" ").replace(b"\r", b" ") for value in given]
    if not blob.isascii() and DOUBTFUL.search(blob):
        given = [_json(value) for value in given]
    return given, b"", b""


def _json(value: bytes) -> bytes:
    if DOUBTFUL.search(value):
        try:
            orjson.loads(value)
        except orjson.JSONDecodeError:
            return quote(value)
    return value


def boolean(values: Values) -> Encoded:
    """Encode booleans."""
    return list(map(BOOLS.__getitem__, values)), b"", b""


def boolean_text(values: Values) -> Encoded:
    """Encode booleans as the strings that PostgreSQL's cast to text gives."""
    return list(map(BOOL_TEXTS.__getitem__, values)), b"", b""


def int8(values: Values) -> Encoded:
    """Encode integers as numbers if a double can represent them, otherwise as strings."""
    if not has_null(values) and max(map(len, values), default=0) <= SAFE_DIGITS:  # type: ignore[arg-type]  # no None
        return values, b"", b""  # type: ignore[return-value]  # no None among them
    return [_int8(value) for value in values], b"", b""


def _int8(value: bytes | None) -> bytes:
    if value is None:
        return NULL
    if len(value) <= SAFE_DIGITS or abs(int(value)) <= MAX_SAFE:
        return value
    return b'"%b"' % value


def number(values: Values) -> Encoded:
    """Encode floats, and numeric if requested, as numbers; NaN and infinities as strings."""
    if not has_null(values):
        blob = b"".join(values)  # type: ignore[arg-type]  # no None among them
        if b"N" not in blob and b"I" not in blob and MINUS_ZERO not in values:
            return values, b"", b""  # type: ignore[return-value]  # no None among them
    return [_number(value) for value in values], b"", b""


def _number(value: bytes | None) -> bytes:
    if value is None:
        return NULL
    if value == MINUS_ZERO:
        # Many parsers read -0 as an integer, which loses the sign.
        return b"-0.0"
    return b'"%b"' % value if value[-1:] in b"Ny" else value


def timestamp(values: Values) -> Encoded:
    """Encode timestamps in ISO 8601 with ``T``; infinities and BC as PostgreSQL's to_json does."""
    if not has_null(values):
        blob = b"\n".join(values)  # type: ignore[arg-type]  # no None among them
        if _is_iso(blob, len(values)) and b"\\" not in blob:
            return blob.replace(b" ", b"T").split(b"\n"), QUOTE, QUOTE
    return _each_timestamp(values)


def timestamptz(values: Values) -> Encoded:
    """Encode timestamps in ISO 8601 with ``T`` and an offset in hours and minutes."""
    if not has_null(values):
        blob = b"\n".join([*values, b""])  # type: ignore[list-item]  # no None among them
        if _is_iso(blob, len(values)):
            *parts, rest = blob.replace(b" ", b"T").split(b"+00\n")
            if len(parts) == len(values) and not rest:
                return parts, QUOTE, b'+00:00"'
    return _each_timestamp(values)


def _is_iso(blob: bytes, count: int) -> bool:
    """True if all of the timestamps have the ISO format, without BC.

    Only this format has one blank and two hyphens: the SQL and German formats have no hyphens, the
    Postgres format has more blanks, infinities have no blanks.
    """
    return blob.count(b" ") == count and blob.count(b"-") == 2 * count and b"B" not in blob


def _each_timestamp(values: Values) -> Encoded:
    return [NULL if value is None else quote(_timestamp(value)) for value in values], b"", b""


def _timestamp(value: bytes) -> bytes:
    match = TIMESTAMP.fullmatch(value)
    if match is None:
        return value
    day, clock, hours, minutes, era = match.groups()
    offset = b"" if hours is None else hours + (minutes or b":00")
    return day + b"T" + clock + offset + (era or b"")


def values_of(
    result: PGresult, start: int = 0, stop: int | None = None
) -> list[Sequence[bytes | None]]:
    """Return the values of some rows by column: PostgreSQL's text, None for NULL.

    One call of a function in C takes a third of the time of a call for each value.
    """
    stop = result.ntuples if stop is None else stop
    count = result.nfields
    if start >= stop:
        return [[] for _ in range(count)]
    transformer = Transformer()
    transformer.set_pgresult(result, set_loaders=False)
    transformer.set_loader_types([BYTEA_OID] * count, Format.BINARY)
    return list(zip(*transformer.load_rows(start, stop, tuple), strict=True))
