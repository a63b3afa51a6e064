"""Parameters: from JSON to PostgreSQL's text, by the types that the server infers for them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson
from psycopg import pq
from psycopg.pq.abc import PGresult

from common.errors import InvalidRequest
from sqlgateway.formats.column_types import BUILTIN
from sqlgateway.pg.tenant_connection import TenantConnection

# The protocol counts parameters in 16 bits.
MAX_PARAMS: Final = 65_535
# PostgreSQL's limit of dimensions of an array.
MAX_DEPTH: Final = 6
# orjson reads deeper JSON than it writes (254 levels).
TOO_DEEP: Final = "JSON this deep must be sent as a string."
INTEGERS: Final = frozenset({"int2", "int4", "int8", "oid"})
OK: Final = frozenset({pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK})
# A domain has the category of its base type; its name says nothing about it.
CATEGORIES: Final = """
SELECT oid, typcategory FROM pg_catalog.pg_type
WHERE oid OPERATOR(pg_catalog.=) ANY ('{%s}'::pg_catalog.oid[])
"""


class ParamType(NamedTuple):
    """The properties of a type that a value's text depends on.

    is_array: the type is an array.
    is_integer: the type, or the type of its elements, is an integer.
    """

    is_array: bool = False
    is_integer: bool = False


@dataclass(frozen=True, slots=True)
class TypeDependentValue:
    """A value whose text depends on its parameter's type.

    An array is an array literal for ``int[]`` and JSON for ``jsonb``; ``1.0`` is ``1`` for an
    integer, which refuses a decimal point.
    """

    value: list[Any] | float
    field: str

    def text_for(self, kind: ParamType) -> bytes:
        """Return the text of the value for a type.

        Raises InvalidRequest with the parameter's name (a NUL character, an array too deep).
        """
        if isinstance(self.value, list):
            if kind.is_array:
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
    each = [kinds.get(oid, ParamType()) for oid in oids]
    each += [ParamType()] * (len(params) - len(oids))
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
    return _text(value, field, ParamType())


def _text(value: Any, field: str, kind: ParamType) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str):
        return _without_nul(value.encode(), field)
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, int | float):
        return _number(value, kind)
    return _json(value, field)


def _number(value: float, kind: ParamType) -> bytes:
    is_whole = kind.is_integer and isinstance(value, float) and value.is_integer()
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


def _array(values: list[Any], field: str, kind: ParamType, *, depth: int) -> bytes:
    if depth > MAX_DEPTH:
        raise InvalidRequest.for_field(field, f"Arrays nest {MAX_DEPTH} deep.", code="too_deep")
    parts: list[bytes] = []
    for value in values:
        if isinstance(value, list):
            parts.append(_array(value, field, kind, depth=depth + 1))
        else:
            parts.append(_element(_text(value, field, kind)))
    return b"{" + b",".join(parts) + b"}"


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


def _kinds(connection: TenantConnection, oids: Iterable[int]) -> dict[int, ParamType]:
    kinds = {oid: _builtin(BUILTIN[oid].name) for oid in oids if oid in BUILTIN}
    own = ",".join(str(oid) for oid in oids if oid not in BUILTIN)
    if not own:
        return kinds
    connection.send_text((CATEGORIES % own).encode())
    while (result := connection.next_result()) is not None:
        for row in range(result.ntuples):
            category = result.get_value(row, 1)
            kinds[int(result.get_value(row, 0) or b"0")] = ParamType(
                is_array=category == b"A", is_integer=category == b"N"
            )
    return kinds


def _builtin(name: str) -> ParamType:
    return ParamType(name.endswith("[]"), name.removesuffix("[]") in INTEGERS)
