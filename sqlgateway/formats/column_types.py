"""Names of columns' types, and the encoder of their values."""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

import psycopg

from sqlgateway.formats import arrays, encoders
from sqlgateway.formats.encoders import Check, Encoder

NumericAs = Literal["string", "number"]
JsonAs = Literal["value", "string"]
ValuesAs = Literal["json", "text"]

# Values of other types are returned as PostgreSQL's text.
ENCODERS: Final[Mapping[str, Encoder]] = {
    "bool": encoders.boolean,
    "int2": encoders.literal,
    "int4": encoders.literal,
    "int8": encoders.int8,
    "float4": encoders.number,
    "float8": encoders.number,
    "json": encoders.json,
    "jsonb": encoders.json,
    "timestamp": encoders.timestamp,
    "timestamptz": encoders.timestamptz,
}
# Types from this oid on were created by users (FirstNormalObjectId); their names are looked up.
FIRST_USER_OID: Final = 16384
# The elements of its arrays are separated by semicolons: the only other typdelim of PostgreSQL.
BOX_ARRAY: Final = 1020


class ColumnType(NamedTuple):
    """A type.

    name: such as ``int8`` or ``int8[]``.
    encoder: the key in ENCODERS for values; empty for users' types and arrays.
    element: the type of the elements of an array, which may be arrays, too: those of a domain.
    delimiter: between the elements in PostgreSQL's text.
    """

    name: str
    encoder: str = ""
    element: "ColumnType | None" = None
    delimiter: bytes = b","


def _builtin() -> dict[int, ColumnType]:
    known: dict[int, ColumnType] = {}
    for info in psycopg.adapters.types:
        known[info.oid] = element = ColumnType(info.name, info.name)
        if info.array_oid:
            delimiter = b";" if info.array_oid == BOX_ARRAY else b","
            known[info.array_oid] = ColumnType(f"{info.name}[]", "", element, delimiter)
    return known


BUILTIN: Final = _builtin()


def text_encoder_for(kind: ColumnType, *, check: Check = encoders.unlimited) -> Encoder:
    """Return the encoder of a type's values as strings with PostgreSQL's text."""
    return encoders.boolean_text if kind.encoder == "bool" else encoders.text_of(check)


def encoder_for(
    kind: ColumnType, numeric: NumericAs, json: JsonAs, *, check: Check = encoders.unlimited
) -> Encoder:
    """Return the encoder of a type's values.

    check: called while a long value is converted, with the length of its JSON so far.
    """
    if kind.element is not None:
        element = encoder_for(kind.element, numeric, json, check=check)
        return arrays.array_of(element, check, delimiter=kind.delimiter)
    scalar = ENCODERS.get(kind.encoder) or encoders.text_of(check)
    if kind.encoder == "numeric" and numeric == "number":
        scalar = encoders.number
    if scalar is encoders.json and json == "string":
        return encoders.text_of(check)
    return scalar
