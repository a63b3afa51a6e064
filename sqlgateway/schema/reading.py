"""Read the schema of a scope's database, for consoles and code generators."""

from typing import Any, Final

import orjson

from common.permissions import Role
from common.principals import Scope
from sqlgateway.execution import gateway
from sqlgateway.execution.requests import ARRAYS, SqlRequest, SqlText
from sqlgateway.schema import queries

LISTS: Final = {
    "schemas": queries.SCHEMAS,
    "tables": queries.TABLES,
    "functions": queries.FUNCTIONS,
    "types": queries.TYPES,
    "extensions": queries.EXTENSIONS,
}


def read(scope: Scope, role: Role, *, schema: str | None, request_id: str) -> dict[str, Any]:
    """Return the objects that the role may see in the database, or in one of its schemas.

    All lists are from one snapshot. ``truncated`` is True if a list exceeds the limits of a
    request; a request for a single schema may return more.
    Raises the errors of ``POST /v1/sql``.
    """
    value = None if schema is None else schema.encode()
    texts = (
        SqlText(queries.SEARCH_PATH, []),
        SqlText(queries.DATABASE, [], ARRAYS),
        *(SqlText(query, [value], ARRAYS) for query in LISTS.values()),
    )
    request = SqlRequest(texts, is_batch=True, isolation="repeatable read")
    answer = orjson.loads(gateway.ask(scope, role, request, request_id=request_id))
    _, database, *lists = ([row[0] for row in result["rows"]] for result in answer["results"])
    return {
        "database": database[0],
        **dict(zip(LISTS, lists, strict=True)),
        "truncated": answer["truncated"],
    }
