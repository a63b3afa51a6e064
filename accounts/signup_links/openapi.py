"""The OpenAPI description of the operations of signing up by a mailed link."""

from typing import Final

from accounts.errors import (
    EmailTaken,
    HashingBusy,
    MailedTooOften,
    SignupLinkGone,
    TooManyAttempts,
)
from common.openapi.operations import Operation, Operations

OPERATIONS: Final[Operations] = {
    "POST /v1/auth/signup/link": Operation(
        tag="Sign in",
        problems=(MailedTooOften, TooManyAttempts),
        request={"email": "alice@example.com"},
        response={"expires_at": 1795459053},
    ),
    "POST /v1/auth/signup/complete": Operation(
        tag="Sign in",
        problems=(EmailTaken, HashingBusy, SignupLinkGone, TooManyAttempts),
        request={
            "token": "k3J9vXq2TzW8mN5cR7bY1sD4fG6hL0pA",
            "password": "correct horse battery staple",
            "organization": "Example Ltd",
        },
        response={
            "status": "authenticated",
            "access_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
            "refresh_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
            "access_expires_at": 1795373549,
            "refresh_expires_at": 1795977449,
            "environment": {"id": "live", "name": "live"},
            "email_verified": True,
            "warnings": [],
        },
    ),
}
