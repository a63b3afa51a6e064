"""The OpenAPI description of the operations on whole organizations."""

from typing import Any, Final

from common.openapi import shapes
from common.openapi.operations import Operation, Operations
from organizations.errors import (
    DeletionBegan,
    DeletionBlocked,
    DeletionNotFound,
    DeletionRequested,
    ExportGone,
    ExportNotFound,
    ExportsFull,
    ExportUnderWay,
    NameMismatch,
    RequestedTooOften,
    TooManyExports,
)

_DUE: Final[dict[str, Any]] = {
    "id": 2,
    "name": "Lakes & Sons",
    "created_at": "2026-11-22T18:38:27.068346Z",
    "deletion_due_at": "2026-11-30T09:12:00.000000Z",
    "deletion_requested_by": "alice@example.com",
}
_KEPT: Final[dict[str, Any]] = {**_DUE, "deletion_due_at": None, "deletion_requested_by": ""}
_EXPORT: Final[dict[str, Any]] = {
    "id": "01a2048d-6b6c-7296-8654-b75268988c34",
    "state": "ready",
    "requested_by": "alice@example.com",
    "requested_at": "2026-11-23T09:12:00.000000Z",
    "finished_at": "2026-11-23T09:12:41.000000Z",
    "expires_at": "2026-11-26T09:12:41.000000Z",
    "size_bytes": 73400320,
    "failure": "",
    "missing": [],
}
_BY_ID: Final = {"export_id": shapes.UUID}

OPERATIONS: Final[Operations] = {
    "POST /v1/organization/deletion": Operation(
        tag="Organization",
        problems=(NameMismatch, DeletionRequested, DeletionBlocked, RequestedTooOften),
        request={"name": "Lakes & Sons"},
        response=_DUE,
    ),
    "DELETE /v1/organization/deletion": Operation(
        tag="Organization", problems=(DeletionNotFound, DeletionBegan), response=_KEPT
    ),
    "GET /v1/organization/exports": Operation(
        tag="Organization", response={"next": None, "previous": None, "results": [_EXPORT]}
    ),
    "POST /v1/organization/exports": Operation(
        tag="Organization",
        problems=(ExportUnderWay, TooManyExports, RequestedTooOften, ExportsFull),
        response={
            **_EXPORT,
            "state": "queued",
            "finished_at": None,
            "expires_at": None,
            "size_bytes": 0,
        },
    ),
    "GET /v1/organization/exports/{export_id}": Operation(
        tag="Organization", path=_BY_ID, problems=(ExportNotFound,), response=_EXPORT
    ),
    "GET /v1/organization/exports/{export_id}/archive": Operation(
        tag="Organization",
        path=_BY_ID,
        problems=(ExportNotFound, ExportGone),
        streams={"application/zip": {"type": "string", "format": "binary"}},
    ),
    "DELETE /v1/organization/exports/{export_id}": Operation(
        tag="Organization", path=_BY_ID, problems=(ExportNotFound, ExportUnderWay)
    ),
}
