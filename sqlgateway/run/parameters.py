"""Parameters: from JSON to PostgreSQL's text, by the types that the server infers for them."""

from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson
from psycopg import pq
from psycopg.pq.abc import PGresult

from common.errors import InvalidRequest
from sqlgateway.formats.column_types import BUILTIN, ColumnType
from sqlgateway.pg.tenant_connection import TenantConnection
from sqlgateway.run.type_lookup import look_up_types

# The protocol counts parameters in 16 bits.
MAX_PARAMS: Final = 65_535
# PostgreSQL's limit of dimensions of an array.
MAX_DEPTH: Final = 6
# orjson reads deeper JSON than it writes (254 levels).
TOO_DEEP: Final = "JSON this deep must be sent as a string."
INTEGERS: Final = frozenset({"int2", "int4", "int8", "oid"})
OK: Final = frozenset({pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK})
# Of a parameter whose type the server did not infer.
UNKNOWN: Final = ColumnType("unknown")


@dataclass(frozen=True, slots=True)
class TypeDependentValue:
    """A value whose text depends on its parameter's type.

    An array is an array literal for ``int[]`` and JSON for ``jsonb``; ``1.0`` is ``1`` for an
    integer, which refuses a decimal point.
    """

    value: list[Any] | float
    field: str

    def text_for(self, kind: ColumnType) -> bytes:
        """Return the text of the value for a type.

        Raises InvalidRequest with the parameter's name (a NUL character, an array too deep).
        """
        if isinstance(self.value, list):
            if kind.element is not None:
                return _array(self.value, self.field, kind, depth=1)
            return _json(self.value, self.field)
        return _number(self.value, kind)


Param = bytes | TypeDependentValue | None


class NotParsed(Exception):
    """The server refused the statement; ``result`` is its error."""

    def __init__(self, result: PGresult) -> None:
        super().__init__()
        self.result = result


def encode_params(values: Sequence[Any], *, field: str = "params") -> list[Param]:
    """Return each parameter as text (objects as JSON), or as a TypeDependentValue.

    Raises InvalidRequest with the parameter's name (too many, a NUL character, JSON too deep).
    """
    if len(values) > MAX_PARAMS:
        raise InvalidRequest.for_field(field, f"At most {MAX_PARAMS} parameters.", code="too_many")
    return [_param(value, f"{field}.{index}") for index, value in enumerate(values)]


def decide(
    connection: TenantConnection, text: bytes, params: Sequence[Param]
) -> Sequence[bytes | None]:
    """Return the text of each parameter of a statement.

    The server parses the statement first if the text of a parameter depends on its type.
    Raises NotParsed, ConnectionLost, and InvalidRequest for a value that cannot be encoded.
    """
    undecided = {
        index for index, value in enumerate(params) if isinstance(value, TypeDependentValue)
    }
    if not undecided:
        return [value for value in params if not isinstance(value, TypeDependentValue)]
    oids = _inferred(connection, text)
    kinds = _kinds(connection, {oids[index] for index in undecided if index < len(oids)})
    # The server refuses surplus parameters when the statement runs.
    each = [kinds.get(oid, UNKNOWN) for oid in oids]
    each += [UNKNOWN] * (len(params) - len(oids))
    return [
        value.text_for(kind) if isinstance(value, TypeDependentValue) else value
        for value, kind in zip(params, each, strict=False)
    ]


def canonical(body: dict[str, Any]) -> bytes:
    """Return a request's body as JSON; whitespace and order in the body do not matter.

    Raises InvalidRequest if its parameters are too deep.
    """
    try:
        return orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        raise InvalidRequest.for_field("params", TOO_DEEP, code="too_deep") from None


def _param(value: Any, field: str) -> Param:
    if isinstance(value, list) or (isinstance(value, float) and value.is_integer()):
        return TypeDependentValue(value, field)
    return _text(value, field, UNKNOWN)


def _text(value: Any, field: str, kind: ColumnType) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str):
        return _without_nul(value.encode(), field)
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, int | float):
        return _number(value, kind)
    return _json(value, field)


def _number(value: float, kind: ColumnType) -> bytes:
    is_whole = kind.encoder in INTEGERS and isinstance(value, float) and value.is_integer()
    return b"%d" % int(value) if is_whole else repr(value).encode("ascii")


def _without_nul(text: bytes, field: str) -> bytes:
    # libpq reads text parameters up to a NUL; the rest would be silently lost.
    if b"\0" in text:
        raise InvalidRequest.for_field(
            field, "PostgreSQL's text holds no NUL character.", code="nul"
        )
    return text


def _json(value: Any, field: str) -> bytes:
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        raise InvalidRequest.for_field(field, TOO_DEEP, code="too_deep") from None


def _array(values: list[Any], field: str, kind: ColumnType, *, depth: int) -> bytes:
    """Return the literal of an array. kind: the array's type.

    A list in it is a dimension, or an element where the elements are arrays (of a domain).
    """
    if depth > MAX_DEPTH:
        raise InvalidRequest.for_field(field, f"Arrays nest {MAX_DEPTH} deep.", code="too_deep")
    element = kind.element or UNKNOWN
    parts: list[bytes] = []
    for value in values:
        if not isinstance(value, list):
            parts.append(_element(_text(value, field, element)))
        elif element.element is None:
            parts.append(_array(value, field, kind, depth=depth + 1))
        else:
            parts.append(_element(_array(value, field, element, depth=depth + 1)))
    return b"{" + kind.delimiter.join(parts) + b"}"


def _element(text: bytes | None) -> bytes:
    if text is None:
        return b"NULL"
    return b'"' + text.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


def _inferred(connection: TenantConnection, text: bytes) -> list[int]:
    connection.send_parse(text)
    parsed = connection.last_result()
    if parsed.status not in OK:
        raise NotParsed(parsed)
    connection.send_describe()
    described = connection.last_result()
    return [described.param_type(index) for index in range(described.nparams)]


def _kinds(connection: TenantConnection, oids: Iterable[int]) -> Mapping[int, ColumnType]:
    unknown = [oid for oid in oids if oid not in BUILTIN and oid not in connection.column_types]
    if unknown:
        look_up_types(connection, unknown)
    return ChainMap(BUILTIN, connection.column_types)
