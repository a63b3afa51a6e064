"""The OpenAPI description of the operations of second factor."""

from typing import Final

from common.openapi.operations import Operation, Operations
from twofactor.errors import (
    CodeRejected,
    EnrolmentGone,
    EnrolmentTooOften,
    FactorNotAllowed,
    FactorSlowed,
    MalformedCode,
)

OPERATIONS: Final[Operations] = {
    "POST /v1/auth/2fa/totp/setup": Operation(
        tag="Second factor",
        problems=(FactorNotAllowed, EnrolmentTooOften),
        request={"issuer": "Example Ltd", "account_name": "alice@example.com"},
        response={
            "secret_id": "krCzODy-ubI7RPUemw6OWQ",
            "secret": "ZIXYCT5EOLJDQPKCYFRSE6RGTKLCSDPN",
            "qr_code_png": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB",
        },
    ),
    "POST /v1/auth/2fa/totp/verify": Operation(
        tag="Second factor",
        problems=(
            MalformedCode,
            CodeRejected,
            FactorNotAllowed,
            EnrolmentGone,
            FactorSlowed,
        ),
        request={"secret_id": "01a20495-5ec6-74e4-b71e-b3c97ffd52bf", "code": "123456"},
        response={
            "success": True,
            "backup_codes": [
                "ZVG1-A5MR-RZYH-BD9H",
                "D6RY-WRNJ-1ZWQ-82M8",
                "EADH-KMME-81ZM-8ZKZ",
                "4V0X-R44E-TPQ8-K4TK",
                "67SQ-3YMP-YAK1-Q7C2",
                "E3E6-F5YQ-J82T-119M",
                "3M0X-SKWP-C7BC-VM23",
                "W4NV-HRZF-7KQA-FTVX",
                "97DJ-PHHV-6CH0-M40B",
                "2M0H-0YGC-S9ZY-M9MP",
            ],
            "status": "authenticated",
            "access_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
            "refresh_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
            "access_expires_at": 1795373620,
            "refresh_expires_at": 1795977520,
            "environment": {"id": "live", "name": "live"},
            "email_verified": False,
            "warnings": [],
        },
    ),
}
