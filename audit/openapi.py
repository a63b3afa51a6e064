"""The OpenAPI description of the operations of audit trail."""

from typing import Final

from common.openapi.operations import Operation, Operations

OPERATIONS: Final[Operations] = {
    "GET /v1/audit": Operation(
        tag="Audit trail",
        response={
            "next": None,
            "previous": None,
            "results": [
                {
                    "id": "01a2048d-903c-7041-9a7b-62e063a6cfea",
                    "at": "2026-11-22T18:38:36.092302Z",
                    "tag": "api:environment:create",
                    "summary": "An environment was created.",
                    "outcome": "refused",
                    "environment": "",
                    "actor_id": "01a2048d-903a-75bd-a141-86b13a517b20",
                    "actor": "alice@example.com",
                    "address": "192.0.2.7",
                    "agent": "curl",
                    "request_id": "",
                    "data": {},
                }
            ],
        },
    ),
}
