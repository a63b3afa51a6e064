"""The schema of a scope's database in one value, for consoles and code generators."""

from typing import Any, Final

import orjson

from platform_site.lib.permissions import Role
from platform_site.lib.principals import Scope
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
    """Return what the role may see of the database, or of one of its schemas.

    ``truncated`` is True if the limits of rows or bytes of a request cut a list; a narrower
    question then has the rest. All lists are of one moment.
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
