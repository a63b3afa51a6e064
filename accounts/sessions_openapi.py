"""The OpenAPI description of the operations of the caller's own sessions."""

from typing import Final

from accounts.errors import (
    SessionNotFound,
)
from common.openapi import shapes
from common.openapi.operations import Operation, Operations

OPERATIONS: Final[Operations] = {
    "GET /v1/auth/sessions": Operation(
        tag="Account",
        response={
            "next": None,
            "previous": None,
            "results": [
                {
                    "id": "01a2048d-6b6c-7296-8654-b75268988c34",
                    "current": True,
                    "environment": {"id": "sandbox", "name": "sandbox"},
                    "address": "127.0.0.1",
                    "agent": "test",
                    "aal": 1,
                    "amr": ["pwd"],
                    "created_at": 1795372706,
                    "last_used_at": 1795373006,
                    "ends_at": 1797964706,
                }
            ],
        },
    ),
    "DELETE /v1/auth/sessions": Operation(
        tag="Account",
        response={"ended": 3},
    ),
    "DELETE /v1/auth/sessions/{session_id}": Operation(
        tag="Account",
        path={"session_id": shapes.UUID},
        problems=(SessionNotFound,),
    ),
}
