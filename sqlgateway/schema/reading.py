"""Read the schema of a scope's database, for consoles and code generators."""

from typing import Any, Final

import orjson

from common.permissions import Role
from common.principals import Scope
from sqlgateway.run import gateway
from sqlgateway.run.requests import ARRAYS, SqlRequest, SqlText
from sqlgateway.schema import catalogue

LISTS: Final = {
    "schemas": catalogue.SCHEMAS,
    "tables": catalogue.TABLES,
    "functions": catalogue.FUNCTIONS,
    "types": catalogue.TYPES,
    "extensions": catalogue.EXTENSIONS,
}


def read(scope: Scope, role: Role, *, schema: str | None, request_id: str) -> dict[str, Any]:
    """Return the objects that the role may see in the database, or in one of its schemas.

    All lists are from one snapshot. ``truncated`` is True if a list exceeds the limits of a
    request; a request for a single schema may return more.
    Raises the errors of ``POST /v1/sql``.
    """
    value = None if schema is None else schema.encode()
    texts = (
        SqlText(catalogue.SEARCH_PATH, []),
        SqlText(catalogue.DATABASE, [], ARRAYS),
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
