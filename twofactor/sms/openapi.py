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
    "POST /v1/auth/2fa/sms/setup": Operation(
        tag="Second factor",
        problems=(
            FactorNotAllowed,
            SendingTooOften,
            ChannelUnavailable,
        ),
        request={"phone_number": "+4915123456789"},
        response={
            "verification_id": "ze4Ui2Sxf6kUk2QEUbWtJw",
            "expires_at": 1795373317,
            "phone_hint": "•••• 89",
            "delivery": "queued",
        },
    ),
    "POST /v1/auth/2fa/sms/verify": Operation(
        tag="Second factor",
        problems=(
            MalformedCode,
            CodeRejected,
            FactorNotAllowed,
            EnrolmentGone,
            FactorSlowed,
        ),
        request={"verification_id": "01a20495-5ec6-74e4-b71e-b3c97ffd52bf", "code": "123456"},
        response={"success": True},
    ),
}
