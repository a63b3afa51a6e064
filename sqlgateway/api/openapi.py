"""The OpenAPI description of the operations of SQL."""

from typing import Final

from common.errors import NotFound, PayloadTooLarge, UnsupportedMedia
from common.openapi import shapes
from common.openapi.operations import Operation, Operations
from environments.errors import EnvironmentNotFound, QuotaExceeded
from sqlgateway.errors import (
    CloneFailed,
    CopyNotSupported,
    DatabaseNotReady,
    EngineFault,
    EngineUnavailable,
    ExtensionInUse,
    ExtensionNotFound,
    IdempotencyKeyInUse,
    IdempotencyKeyReused,
    IdempotencyNotSupported,
    OutcomeUnknown,
    QueryCancelled,
    QueryTimeout,
    RequestNotRunning,
    ResultNotText,
    ResultTooWide,
    SavedQueryChanged,
    SavedQueryNotFound,
    SavedQueryTaken,
    SqlBusy,
    SqlConflict,
    SqlForbidden,
    SqlRefused,
    SqlTooLarge,
    SqlUnavailable,
    StatementOutOfOrder,
    TooManyQueries,
    TooManySavedQueries,
    TooManyTransactions,
    TransactionBusy,
    TransactionElsewhere,
    TransactionEnded,
    TransactionNotCommitted,
    TransactionNotFound,
    TransactionOver,
    UploadInterrupted,
)

# What any statement of the gateway's own can meet.
STATEMENT: Final = (
    NotFound,
    QueryCancelled,
    QueryTimeout,
    SqlRefused,
    SqlForbidden,
    SqlConflict,
    ResultTooWide,
    SqlTooLarge,
    TooManyQueries,
    EngineFault,
    OutcomeUnknown,
    SqlBusy,
    SqlUnavailable,
    EngineUnavailable,
    DatabaseNotReady,
    CloneFailed,
    QuotaExceeded,
)
EXTENSION: Final = {
    "name": "pg_trgm",
    "version": "1.6",
    "is_installed": True,
    "schema": "public",
    "comment": "text similarity measurement and index searching based on trigrams",
}
RESULT: Final = {
    "columns": [{"name": "sum", "type": "int4", "oid": 23}],
    "rows": [{"sum": 5}],
    "row_count": 1,
    "command": "SELECT",
    "truncated": False,
    "notices": [],
    "stats": {"elapsed_ms": 1.9, "bytes": 9},
    "request_id": "01a2048e-b1a8-705e-9980-4eba45833da9",
}
TRANSACTION: Final = {
    "id": "01a2048e-b1a8-705e-9980-4eba45833da9",
    "state": "open",
    "created_at": "2026-11-22T18:38:27.068346Z",
    "expires_at": "2026-11-22T18:39:27.068346Z",
}
SAVED: Final = {
    "id": "01a2048e-b1a8-705e-9980-4eba45833da9",
    "name": "Orders of this week",
    "query": "SELECT * FROM orders WHERE at > now() - interval '7 days'",
    "version": 1,
    "created_at": "2026-11-22T18:38:36.092302Z",
    "updated_at": "2026-11-22T18:38:36.092302Z",
    "updated_by": "alice@example.com",
}
OPERATIONS: Final[Operations] = {
    "POST /v1/sql": Operation(
        tag="SQL",
        problems=(
            NotFound,
            CopyNotSupported,
            QueryCancelled,
            QueryTimeout,
            ResultNotText,
            SqlRefused,
            IdempotencyNotSupported,
            IdempotencyKeyInUse,
            IdempotencyKeyReused,
            TransactionEnded,
            TransactionNotCommitted,
            SqlForbidden,
            QuotaExceeded,
            SqlConflict,
            ResultTooWide,
            SqlTooLarge,
            TooManyQueries,
            EngineFault,
            OutcomeUnknown,
            SqlBusy,
            SqlUnavailable,
            EngineUnavailable,
            DatabaseNotReady,
            CloneFailed,
        ),
        streams={
            "application/x-ndjson": shapes.TEXT,
            "text/csv": shapes.TEXT,
            "application/vnd.apache.arrow.stream": {"type": "string", "format": "binary"},
        },
        request={"query": "SELECT $1::int + $2::int AS sum", "params": [2, 3]},
        response=RESULT,
    ),
    "GET /v1/sql/schema": Operation(
        tag="SQL",
        problems=STATEMENT,
        response={
            "database": {"size_bytes": 7840255, "server_version": "18.6"},
            "schemas": [{"name": "public", "comment": "standard public schema"}],
            "tables": [
                {
                    "schema": "public",
                    "name": "items",
                    "kind": "table",
                    "comment": None,
                    "estimated_rows": 1200,
                    "size_bytes": 163840,
                    "definition": None,
                    "columns": [
                        {
                            "name": "id",
                            "type": "bigint",
                            "is_nullable": False,
                            "default": None,
                            "generated": None,
                            "identity": "always",
                            "comment": None,
                        }
                    ],
                    "constraints": [
                        {
                            "name": "items_pkey",
                            "kind": "primary_key",
                            "definition": "PRIMARY KEY (id)",
                            "columns": ["id"],
                            "references": None,
                        }
                    ],
                    "indexes": [
                        {
                            "name": "items_pkey",
                            "definition": "CREATE UNIQUE INDEX items_pkey ON public.items "
                            "USING btree (id)",
                            "is_unique": True,
                            "is_primary": True,
                            "is_valid": True,
                            "size_bytes": 49152,
                        }
                    ],
                }
            ],
            "functions": [],
            "types": [],
            "extensions": [{"name": "pg_trgm", "version": "1.6", "schema": "public"}],
            "truncated": False,
        },
    ),
    "GET /v1/environments/{environment_id}/extensions": Operation(
        tag="SQL",
        problems=(*STATEMENT, EnvironmentNotFound),
        response={"results": [EXTENSION]},
    ),
    "POST /v1/environments/{environment_id}/extensions": Operation(
        tag="SQL",
        problems=(*STATEMENT, EnvironmentNotFound, ExtensionNotFound),
        request={"name": "pg_trgm"},
        response=EXTENSION,
    ),
    "DELETE /v1/environments/{environment_id}/extensions/{extension_name}": Operation(
        tag="SQL",
        problems=(*STATEMENT, EnvironmentNotFound, ExtensionNotFound, ExtensionInUse),
    ),
    "POST /v1/sql/transactions": Operation(
        tag="SQL",
        problems=(NotFound, TooManyTransactions, TooManyQueries, SqlBusy, EngineUnavailable),
        request={"isolation": "serializable"},
        response=TRANSACTION,
    ),
    "GET /v1/sql/transactions/{transaction_id}": Operation(
        tag="SQL", problems=(TransactionNotFound,), response=TRANSACTION
    ),
    "POST /v1/sql/transactions/{transaction_id}/statements": Operation(
        tag="SQL",
        problems=(
            *STATEMENT,
            TransactionNotFound,
            TransactionOver,
            TransactionBusy,
            TransactionElsewhere,
            TransactionEnded,
            StatementOutOfOrder,
            CopyNotSupported,
            ResultNotText,
        ),
        request={"number": 1, "query": "SELECT $1::int + $2::int AS sum", "params": [2, 3]},
        response=RESULT,
    ),
    "POST /v1/sql/transactions/{transaction_id}/commit": Operation(
        tag="SQL",
        problems=(
            *STATEMENT,
            TransactionNotFound,
            TransactionOver,
            TransactionBusy,
            TransactionElsewhere,
        ),
        response={**TRANSACTION, "state": "committed"},
    ),
    "DELETE /v1/sql/transactions/{transaction_id}": Operation(
        tag="SQL",
        problems=(
            *STATEMENT,
            TransactionNotFound,
            TransactionOver,
            TransactionBusy,
            TransactionElsewhere,
        ),
    ),
    "POST /v1/sql/import": Operation(
        tag="SQL",
        problems=(
            *STATEMENT,
            IdempotencyNotSupported,
            PayloadTooLarge,
            UnsupportedMedia,
            UploadInterrupted,
        ),
        request="id,name\n1,first\n2,second\n",
        response={
            "command": "COPY",
            "row_count": 2,
            "notices": [],
            "stats": {"elapsed_ms": 3.1, "bytes": 27},
            "request_id": "01a2048e-b1a8-705e-9980-4eba45833da9",
        },
    ),
    "GET /v1/sql/activity": Operation(
        tag="SQL",
        response={
            "since": "2026-11-22T19:00:00Z",
            "requests": 120,
            "failures": 2,
            "hours": [
                {
                    "hour": "2026-11-22T19:00:00Z",
                    "requests": 120,
                    "failures": 2,
                    "average_ms": 2.4,
                    "slowest_ms": 31.8,
                }
            ],
        },
    ),
    "GET /v1/sql/history": Operation(
        tag="SQL",
        response={
            "next": None,
            "previous": None,
            "results": [
                {
                    "request_id": "01a2048e-b1a8-705e-9980-4eba45833da9",
                    "at": "2026-11-22T18:38:36.092302Z",
                    "user_id": "01a2048d-903a-75bd-a141-86b13a517b20",
                    "user": "alice@example.com",
                    "role": "admin",
                    "query": "SELECT $1::int + $2::int AS sum",
                    "is_cut": False,
                    "statements": 1,
                    "outcome": "success",
                    "sqlstate": "",
                    "row_count": 1,
                    "elapsed_ms": 1.9,
                }
            ],
        },
    ),
    "GET /v1/sql/queries": Operation(
        tag="SQL", response={"next": None, "previous": None, "results": [SAVED]}
    ),
    "POST /v1/sql/queries": Operation(
        tag="SQL",
        problems=(SavedQueryTaken, TooManySavedQueries),
        request={"name": SAVED["name"], "query": SAVED["query"]},
        response=SAVED,
    ),
    "GET /v1/sql/queries/{query_id}": Operation(
        tag="SQL",
        path={"query_id": shapes.UUID},
        problems=(SavedQueryNotFound,),
        response=SAVED,
    ),
    "PATCH /v1/sql/queries/{query_id}": Operation(
        tag="SQL",
        path={"query_id": shapes.UUID},
        problems=(SavedQueryNotFound, SavedQueryTaken, SavedQueryChanged),
        request={"version": 1, "name": "Orders of seven days"},
        response={**SAVED, "name": "Orders of seven days", "version": 2},
    ),
    "DELETE /v1/sql/queries/{query_id}": Operation(
        tag="SQL", path={"query_id": shapes.UUID}, problems=(SavedQueryNotFound,)
    ),
    "GET /v1/sql/running": Operation(
        tag="SQL",
        response={
            "next": None,
            "previous": None,
            "results": [
                {
                    "request_id": "01a2048e-b1a8-705e-9980-4eba45833da9",
                    "at": "2026-11-22T18:38:36.092302Z",
                    "user_id": "01a2048d-903a-75bd-a141-86b13a517b20",
                    "user": "alice@example.com",
                    "role": "admin",
                    "query": "SELECT count(*) FROM items",
                    "is_cancelled": False,
                }
            ],
        },
    ),
    "DELETE /v1/sql/{request_id}": Operation(tag="SQL", problems=(RequestNotRunning,)),
    "GET /v1/sql/usage": Operation(
        tag="SQL",
        response={
            "disk": {
                "used_bytes": 8_400_000,
                "limit_bytes": 10_737_418_240,
                "exceeded": False,
                "measured_at": "2026-11-22T21:04:00.114302Z",
            },
            "environments": {"used": 2, "limit": 100},
            "connections": {"limit": 30, "limit_per_role": 20},
            "statements": {
                "running_limit_per_environment": 4,
                "running_limit_per_organization": 6,
                "timeout_ms": 30_000,
                "stream_timeout_ms": 600_000,
                "import_timeout_ms": 600_000,
                "max_rows": 10_000,
                "max_bytes": 8 * 2**20,
                "body_limit_bytes": 2**20,
                "import_limit_bytes": 2**30,
            },
        },
    ),
}
