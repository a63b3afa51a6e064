"""Rows as an Arrow stream: typed columns in record batches. Needs the extra ``arrow`` (pyarrow)."""

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from common.errors import InvalidRequest
from sqlgateway.errors import ResultNotText
from sqlgateway.formats.column_types import ColumnType
from sqlgateway.formats.encoders import Values
from sqlgateway.formats.results import Column
from sqlgateway.formats.row_writer import ColumnTypes

# The end of a stream: a continuation mark and a length of 0 (Arrow IPC streaming format).
END: Final = b"\xff\xff\xff\xff\x00\x00\x00\x00"


class ArrowWriter:
    """A schema, then a record batch for each call. Requires ``is_available``."""

    def __init__(self) -> None:
        self._columns: Sequence[Column] = ()
        self._column_types: list[ColumnType] = []
        self._schema: Any = None

    def start(self, columns: Sequence[Column], column_types: ColumnTypes) -> bytes:
        """Return the schema."""
        arrow = _arrow()
        self._columns = columns
        self._column_types = [column_types[column.oid] for column in columns]
        fields = zip(columns, self._column_types, strict=True)
        self._schema = arrow.schema([(column.key, _type(kind)) for column, kind in fields])
        return bytes(self._schema.serialize())

    def rows(self, values: Sequence[Values], count: int) -> bytes:
        """Return a record batch; none for rows without columns.

        Raises InvalidRequest for a value that its column's type cannot hold, such as infinity;
        ResultNotText for bytes that are not UTF-8.
        """
        if not values:
            return b""
        arrow = _arrow()
        arrays = []
        for column, kind, given in zip(self._columns, self._column_types, values, strict=True):
            try:
                arrays.append(_array(kind, given))
            except UnicodeDecodeError as exc:
                raise ResultNotText("A value is not UTF-8.") from exc
            except ValueError:
                message = f"A value of {column.name} has no form in Arrow: cast it to text."
                raise InvalidRequest.for_field("format", message) from None
        return bytes(arrow.record_batch(arrays, schema=self._schema).serialize())

    def end(self) -> bytes:
        """Return the end mark, without which a stream is incomplete."""
        return END


def is_available() -> bool:
    """True if the extra is installed."""
    return find_spec("pyarrow") is not None


@cache
def _arrow() -> Any:
    """Return pyarrow, which is imported at the first use because it takes 50 MB."""
    return import_module("pyarrow")


@cache
def _types() -> dict[str, Any]:
    arrow = _arrow()
    return {
        "bool": arrow.bool_(),
        "int2": arrow.int16(),
        "int4": arrow.int32(),
        "int8": arrow.int64(),
        "float4": arrow.float32(),
        "float8": arrow.float64(),
        "bytea": arrow.binary(),
        "date": arrow.date32(),
        "timestamp": arrow.timestamp("us"),
        "timestamptz": arrow.timestamp("us", "UTC"),
    }


def _type(kind: ColumnType) -> Any:
    """Return the Arrow type; text for numeric, which no Arrow type can represent, and others."""
    return _types().get(kind.encoder, _arrow().string())


def _array(kind: ColumnType, values: Values) -> Any:
    """Return a column's values.

    Raises UnicodeDecodeError, and ValueError (such as ArrowInvalid) for text in another format.
    """
    arrow, wanted = _arrow(), _type(kind)
    b"\n".join([value for value in values if value is not None]).decode()
    convert = CONVERSIONS.get(kind.encoder)
    if convert is not None:
        return arrow.array([None if value is None else convert(value) for value in values], wanted)
    return arrow.array(values, arrow.binary()).cast(arrow.string()).cast(wanted)


def _bytea(value: bytes) -> bytes:
    if value[:2] != b"\\x":
        # bytea_output was changed to escape.
        raise ValueError
    return bytes.fromhex(value[2:].decode())


CONVERSIONS: Final[dict[str, Callable[[bytes], Any]]] = {
    "bool": lambda value: value == b"t",
    "bytea": _bytea,
}
