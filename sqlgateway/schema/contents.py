"""Number of tables and size of an environment's database (settings.ENVIRONMENT_CONTENTS)."""

from typing import Final

import orjson

from common.errors import PlatformError
from common.principals import Scope
from sqlgateway.models import Database
from sqlgateway.run import gateway
from sqlgateway.run.requests import ARRAYS, SqlRequest, SqlText
from sqlgateway.schema import catalogue

TABLE_COUNT_AND_SIZE: Final = """
SELECT count(*), pg_database_size(current_database())
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
  AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
"""


def contents_of(scope: Scope, *, request_id: str) -> dict[str, int | None]:
    """Return ``tables`` and ``database_bytes``; ``tables`` is None if the database does not answer.

    Does not create a database if the environment has none.
    """
    database: Database | None = Database.scoped.within(scope).first()
    if database is None:
        return {"tables": 0, "database_bytes": 0}
    try:
        tables, size = _ask(scope, request_id)
    except PlatformError:
        return {"tables": None, "database_bytes": database.size_bytes}
    return {"tables": tables, "database_bytes": size}


def _ask(scope: Scope, request_id: str) -> tuple[int, int]:
    texts = (SqlText(catalogue.SEARCH_PATH, []), SqlText(TABLE_COUNT_AND_SIZE, [], ARRAYS))
    request = SqlRequest(texts, is_batch=True)
    answer = orjson.loads(gateway.ask(scope, "admin", request, request_id=request_id))
    ((tables, size),) = answer["results"][1]["rows"]
    return int(tables), int(size)
