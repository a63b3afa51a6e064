"""The OpenAPI description of the operations of API keys."""

from typing import Any, Final

from accounts.errors import ApiKeyNotFound, ApiKeysMadeTooOften, SessionRevoked, TooManyApiKeys
from common.openapi import shapes
from common.openapi.operations import Operation, Operations

_KEY: Final[dict[str, Any]] = {
    "id": "01a2048d-6b6c-7296-8654-b75268988c34",
    "name": "nightly import",
    "hint": "p3Xw",
    "role": "operator",
    "scopes": ["sql:read", "sql:write"],
    "state": "active",
    "created_by": "alice@example.com",
    "created_at": 1795372706,
    "expires_at": 1803148706,
    "last_used_at": 1795373006,
    "last_used_address": "192.0.2.7",
}
_NEW: Final[dict[str, Any]] = {
    **_KEY,
    "last_used_at": None,
    "last_used_address": "",
    "key": "zk_live_…",
}

OPERATIONS: Final[Operations] = {
    "GET /v1/api-keys": Operation(
        tag="API keys", response={"next": None, "previous": None, "results": [_KEY]}
    ),
    "POST /v1/api-keys": Operation(
        tag="API keys",
        problems=(SessionRevoked, TooManyApiKeys, ApiKeysMadeTooOften),
        request={"name": "nightly import", "role": "operator", "scopes": ["sql:write"]},
        response=_NEW,
    ),
    "GET /v1/api-keys/{key_id}": Operation(
        tag="API keys",
        path={"key_id": shapes.UUID},
        problems=(ApiKeyNotFound,),
        response=_KEY,
    ),
    "DELETE /v1/api-keys/{key_id}": Operation(
        tag="API keys", path={"key_id": shapes.UUID}, problems=(ApiKeyNotFound,)
    ),
}
