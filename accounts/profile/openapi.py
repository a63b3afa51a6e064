"""The OpenAPI description of the operations of the caller's own account."""

from typing import Final

from accounts.errors import (
    EmailChangeGone,
    EmailCodeGone,
    EmailCodeRejected,
    EmailTaken,
    EmailVerified,
    HashingBusy,
    InvalidCredentials,
    MailedTooOften,
    SessionRevoked,
    TooManyAttempts,
)
from common.openapi.operations import Operation, Operations

OPERATIONS: Final[Operations] = {
    "GET /v1/auth/email": Operation(
        tag="Account",
        response={
            "email": "alice@example.com",
            "email_verified": True,
            "pending_email": None,
            "code_expires_at": None,
        },
    ),
    "POST /v1/auth/email/cancel": Operation(
        tag="Account",
        problems=(EmailChangeGone,),
        request={"token": "k3J9vXq2TzW8mN5cR7bY1sD4fG6hL0pA"},
    ),
    "POST /v1/auth/email/change": Operation(
        tag="Account",
        problems=(MailedTooOften,),
        request={"email": "alice.new@example.com"},
        response={
            "email": "dora@example.com",
            "email_verified": False,
            "pending_email": "stranger@example.org",
            "code_expires_at": 1795459053,
        },
    ),
    "DELETE /v1/auth/email/change": Operation(
        tag="Account",
        problems=(EmailChangeGone,),
    ),
    "POST /v1/auth/email/resend": Operation(
        tag="Account",
        problems=(
            EmailVerified,
            EmailChangeGone,
            MailedTooOften,
        ),
        response={
            "email": "alice@example.com",
            "email_verified": True,
            "pending_email": "charlie@example.org",
            "code_expires_at": 1795459166,
        },
    ),
    "POST /v1/auth/email/verify": Operation(
        tag="Account",
        problems=(
            EmailCodeRejected,
            SessionRevoked,
            EmailTaken,
            EmailChangeGone,
            EmailCodeGone,
            MailedTooOften,
        ),
        request={"code": "ABCD-EFGH"},
        response={
            "email": "Alice@new.example",
            "email_verified": True,
            "pending_email": None,
            "code_expires_at": None,
        },
    ),
    "GET /v1/auth/password": Operation(
        tag="Account",
        response={"has_password": False},
    ),
    "POST /v1/auth/password": Operation(
        tag="Account",
        problems=(
            InvalidCredentials,
            TooManyAttempts,
            HashingBusy,
        ),
        request={
            "current_password": "correct horse battery staple",
            "password": "an even longer staple of batteries",
        },
        response={"ended": 0},
    ),
}
