"""Choose the text of parameters by the types that the server infers for them."""

from collections.abc import Iterable, Sequence
from typing import Final

from psycopg import pq
from psycopg.pq.abc import PGresult

from sqlgateway.formats.column_types import BUILTIN
from sqlgateway.pg.tenant_connection import TenantConnection
from sqlgateway.run.parameters import Param, ParamType, TypeDependentValue

INTEGERS: Final = frozenset({"int2", "int4", "int8", "oid"})
OK: Final = frozenset({pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK})
# A domain has the category of its base type; its name says nothing about it.
CATEGORIES: Final = """
SELECT oid, typcategory FROM pg_catalog.pg_type
WHERE oid OPERATOR(pg_catalog.=) ANY ('{%s}'::pg_catalog.oid[])
"""


class NotParsed(Exception):
    """The server refused the statement; ``result`` is its error."""

    def __init__(self, result: PGresult) -> None:
        super().__init__()
        self.result = result


def decide(
    session: TenantConnection, text: bytes, params: Sequence[Param]
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
    oids = _inferred(session, text)
    kinds = _kinds(session, {oids[index] for index in undecided if index < len(oids)})
    # The server refuses surplus parameters when the statement runs.
    each = [kinds.get(oid, ParamType()) for oid in oids]
    each += [ParamType()] * (len(params) - len(oids))
    return [
        value.text_for(kind) if isinstance(value, TypeDependentValue) else value
        for value, kind in zip(params, each, strict=False)
    ]


def _inferred(session: TenantConnection, text: bytes) -> list[int]:
    session.send_parse(text)
    parsed = session.last_result()
    if parsed.status not in OK:
        raise NotParsed(parsed)
    session.send_describe()
    described = session.last_result()
    return [described.param_type(index) for index in range(described.nparams)]


def _kinds(session: TenantConnection, oids: Iterable[int]) -> dict[int, ParamType]:
    kinds = {oid: _builtin(BUILTIN[oid].name) for oid in oids if oid in BUILTIN}
    own = ",".join(str(oid) for oid in oids if oid not in BUILTIN)
    if not own:
        return kinds
    session.send_text((CATEGORIES % own).encode())
    while (result := session.next_result()) is not None:
        for row in range(result.ntuples):
            category = result.get_value(row, 1)
            kinds[int(result.get_value(row, 0) or b"0")] = ParamType(
                is_array=category == b"A", is_integer=category == b"N"
            )
    return kinds


def _builtin(name: str) -> ParamType:
    return ParamType(name.endswith("[]"), name.removesuffix("[]") in INTEGERS)
