"""The OpenAPI description of the operations of SQL."""

from typing import Final

from platform_site.lib.errors import NotFound
from platform_site.lib.openapi.operations import Operation, Operations
from sqlgateway.errors import (
    CopyNotSupported,
    EngineAway,
    EngineFault,
    OutcomeUnknown,
    QueryCancelled,
    QueryTimeout,
    ResultTooWide,
    SqlBusy,
    SqlConflict,
    SqlForbidden,
    SqlRefused,
    SqlTooLarge,
    SqlUnavailable,
    TooManyQueries,
    TransactionEnded,
    TransactionNotCommitted,
)

OPERATIONS: Final[Operations] = {
    "POST /v1/sql": Operation(
        tag="SQL",
        problems=(
            NotFound,
            CopyNotSupported,
            QueryCancelled,
            QueryTimeout,
            SqlRefused,
            TransactionEnded,
            TransactionNotCommitted,
            SqlForbidden,
            SqlConflict,
            ResultTooWide,
            SqlTooLarge,
            TooManyQueries,
            EngineFault,
            OutcomeUnknown,
            SqlBusy,
            SqlUnavailable,
            EngineAway,
        ),
        request={"query": "SELECT $1::int + $2::int AS sum", "params": [2, 3]},
        response={
            "columns": [{"name": "sum", "type": "int4", "oid": 23}],
            "rows": [{"sum": 5}],
            "row_count": 1,
            "command": "SELECT",
            "truncated": False,
            "notices": [],
            "stats": {"elapsed_ms": 1.9, "bytes": 9},
            "request_id": "01a2048e-b1a8-705e-9980-4eba45833da9",
        },
    ),
}
