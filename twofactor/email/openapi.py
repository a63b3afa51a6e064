"""The OpenAPI description of the operations of second factor."""

from typing import Final

from common.openapi.operations import Operation, Operations
from twofactor.errors import (
    ChannelUnavailable,
    CodeRejected,
    EnrolmentGone,
    FactorNotAllowed,
    FactorSlowed,
    MalformedCode,
    SendingTooOften,
)

OPERATIONS: Final[Operations] = {
    "POST /v1/auth/2fa/email/setup": Operation(
        tag="Second factor",
        problems=(
            FactorNotAllowed,
            SendingTooOften,
            ChannelUnavailable,
        ),
        response={
            "verification_id": "s0qFNruzzIyzOJI4MJsumQ",
            "expires_at": 1795373319,
            "email_hint": "a•••@example.com",
            "delivery": "queued",
        },
    ),
    "POST /v1/auth/2fa/email/verify": Operation(
        tag="Second factor",
        problems=(
            MalformedCode,
            CodeRejected,
            FactorNotAllowed,
            EnrolmentGone,
            FactorSlowed,
        ),
        request={"verification_id": "01a20495-5ec6-74e4-b71e-b3c97ffd52bf", "code": "123456"},
        response={
            "success": True,
            "status": "authenticated",
            "access_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
            "refresh_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
            "access_expires_at": 1795546422,
            "refresh_expires_at": 1796150322,
            "environment": {"id": "live", "name": "live"},
            "email_verified": False,
            "warnings": [],
        },
    ),
}
