"""The OpenAPI description of the operations of environments."""

from typing import Any, Final

from common.openapi.operations import Operation, Operations
from environments.errors import (
    EnvironmentBuiltIn,
    EnvironmentNotFound,
    EnvironmentNotReady,
    EnvironmentTaken,
    QuotaExceeded,
)

ORGANIZATION: Final[dict[str, Any]] = {
    "id": 2,
    "name": "Lakes & Sons",
    "created_at": "2026-11-22T18:38:27.068346Z",
    "deletion_due_at": None,
    "deletion_requested_by": "",
}

OPERATIONS: Final[Operations] = {
    "GET /v1/organization": Operation(tag="Organization", response=ORGANIZATION),
    "PATCH /v1/organization": Operation(
        tag="Organization", request={"name": "Lakes & Sons"}, response=ORGANIZATION
    ),
    "GET /v1/environments": Operation(
        tag="Environments",
        response={
            "next": None,
            "previous": None,
            "results": [
                {
                    "id": "live",
                    "name": "live",
                    "built_in": True,
                    "created_at": "2026-11-22T18:38:27.068346Z",
                    "database_state": "ready",
                    "database_error": None,
                }
            ],
        },
    ),
    "POST /v1/environments": Operation(
        tag="Environments",
        problems=(EnvironmentNotFound, EnvironmentTaken, EnvironmentNotReady, QuotaExceeded),
        request={"id": "staging", "name": "Staging", "from": "live"},
        response={
            "id": "stage",
            "name": "stage",
            "built_in": False,
            "database_state": "none",
            "database_error": None,
            "database_progress": None,
            "created_at": "2026-11-22T18:38:27.089303Z",
        },
    ),
    "GET /v1/environments/{environment_id}": Operation(
        tag="Environments",
        problems=(EnvironmentNotFound,),
        response={
            "id": "staging",
            "name": "Staging",
            "built_in": False,
            "database_state": "none",
            "database_error": None,
            "database_progress": None,
            "created_at": "2026-11-22T18:39:17.684527Z",
        },
    ),
    "PATCH /v1/environments/{environment_id}": Operation(
        tag="Environments",
        problems=(
            EnvironmentNotFound,
            EnvironmentTaken,
        ),
        request={"name": "Staging (old)"},
        response={
            "id": "sandbox",
            "name": "Playground",
            "built_in": True,
            "database_state": "none",
            "database_error": None,
            "database_progress": None,
            "created_at": "2026-11-22T18:39:17.971246Z",
        },
    ),
    "GET /v1/organization/activity": Operation(
        tag="Organization",
        response={
            "since": "2026-11-22T19:00:00Z",
            "requests": 5210,
            "refused": 12,
            "failed": 0,
            "hours": [
                {"hour": "2026-11-22T19:00:00Z", "requests": 5210, "refused": 12, "failed": 0}
            ],
        },
    ),
    "GET /v1/environments/{environment_id}/contents": Operation(
        tag="Environments",
        problems=(EnvironmentNotFound,),
        response={
            "tables": 12,
            "database_bytes": 8601600,
            "buckets": 2,
            "objects": 1204,
            "object_bytes": 73400320,
            "access_keys": 1,
        },
    ),
    "DELETE /v1/environments/{environment_id}": Operation(
        tag="Environments",
        problems=(
            EnvironmentNotFound,
            EnvironmentBuiltIn,
        ),
    ),
}
