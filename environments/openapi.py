"""The OpenAPI description of the operations of environments."""

from typing import Final

from environments.errors import (
    EnvironmentBuiltIn,
    EnvironmentNotFound,
    EnvironmentNotReady,
    EnvironmentTaken,
    QuotaExceeded,
)
from platform_site.lib.openapi.operations import Operation, Operations

OPERATIONS: Final[Operations] = {
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
            "created_at": "2026-11-22T18:39:17.971246Z",
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
