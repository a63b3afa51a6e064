"""The OpenAPI description of the operations of webhooks."""

from typing import Any, Final

from common.openapi import shapes
from common.openapi.operations import Operation, Operations
from outbox.errors import (
    TooManyWebhooks,
    WebhookDeliveryNotFound,
    WebhookIsOff,
    WebhookNotFound,
    WebhookSentTooOften,
)

_WEBHOOK: Final[dict[str, Any]] = {
    "id": "01a2048d-6b6c-7296-8654-b75268988c34",
    "url": "https://hooks.example.com/zonal",
    "description": "the office's chat",
    "events": ["member.added", "member.removed"],
    "state": "enabled",
    "disabled_reason": "",
    "failing_since": None,
    "previous_secret_ends_at": None,
    "created_by": "alice@example.com",
    "created_at": "2026-11-22T18:38:16.152946Z",
}
_NEW: Final[dict[str, Any]] = {**_WEBHOOK, "secret": "whsec_…"}
_DELIVERY: Final[dict[str, Any]] = {
    "id": "01a2048d-7d11-70ad-9a55-2d1a1c7f0d52",
    "message_id": "msg_01a2048d7d1170ad9a552d1a1c7f0d52",
    "event": "member.added",
    "state": "delivered",
    "attempts": 2,
    "last_status": 200,
    "last_error": "",
    "log": [
        {"at": "2026-11-22T18:40:00Z", "status": 503, "error": "refused", "elapsed_ms": 31},
        {"at": "2026-11-22T18:41:02Z", "status": 200, "error": "", "elapsed_ms": 24},
    ],
    "created_at": "2026-11-22T18:40:00.000001Z",
    "next_attempt_at": None,
    "finished_at": "2026-11-22T18:41:02.031Z",
}
_QUEUED: Final[dict[str, Any]] = {
    **_DELIVERY,
    "state": "queued",
    "attempts": 0,
    "last_status": None,
    "log": [],
    "next_attempt_at": "2026-11-22T18:40:00.000001Z",
    "finished_at": None,
}
_WHICH: Final = {"webhook_id": shapes.UUID}
_WHICH_DELIVERY: Final = {"webhook_id": shapes.UUID, "delivery_id": shapes.UUID}
_DELIVERIES: Final = "/v1/webhooks/{webhook_id}/deliveries"

OPERATIONS: Final[Operations] = {
    "GET /v1/webhooks": Operation(
        tag="Webhooks", response={"next": None, "previous": None, "results": [_WEBHOOK]}
    ),
    "POST /v1/webhooks": Operation(
        tag="Webhooks",
        problems=(TooManyWebhooks,),
        request={
            "url": "https://hooks.example.com/zonal",
            "events": ["member.added", "member.removed"],
            "description": "the office's chat",
        },
        response=_NEW,
    ),
    "GET /v1/webhooks/{webhook_id}": Operation(
        tag="Webhooks", path=_WHICH, problems=(WebhookNotFound,), response=_WEBHOOK
    ),
    "PATCH /v1/webhooks/{webhook_id}": Operation(
        tag="Webhooks",
        path=_WHICH,
        problems=(WebhookNotFound,),
        request={"state": "enabled"},
        response=_WEBHOOK,
    ),
    "DELETE /v1/webhooks/{webhook_id}": Operation(
        tag="Webhooks", path=_WHICH, problems=(WebhookNotFound,)
    ),
    "POST /v1/webhooks/{webhook_id}/secret/rotate": Operation(
        tag="Webhooks",
        path=_WHICH,
        problems=(WebhookNotFound,),
        request={"keep_previous": True},
        response=_NEW,
    ),
    "POST /v1/webhooks/{webhook_id}/test": Operation(
        tag="Webhooks",
        path=_WHICH,
        problems=(WebhookNotFound, WebhookIsOff, WebhookSentTooOften),
        response={**_QUEUED, "event": "webhook.test"},
    ),
    f"GET {_DELIVERIES}": Operation(
        tag="Webhooks",
        path=_WHICH,
        problems=(WebhookNotFound,),
        response={"next": None, "previous": None, "results": [_DELIVERY]},
    ),
    f"GET {_DELIVERIES}/{{delivery_id}}": Operation(
        tag="Webhooks",
        path=_WHICH_DELIVERY,
        problems=(WebhookNotFound, WebhookDeliveryNotFound),
        response=_DELIVERY,
    ),
    f"POST {_DELIVERIES}/{{delivery_id}}/resend": Operation(
        tag="Webhooks",
        path=_WHICH_DELIVERY,
        problems=(WebhookNotFound, WebhookDeliveryNotFound, WebhookIsOff, WebhookSentTooOften),
        response=_QUEUED,
    ),
}
