"""The OpenAPI description of the operations of sign-in and of the caller's own sessions."""

from typing import Final

from accounts.errors import (
    EmailTaken,
    HashingBusy,
    InvalidCredentials,
    SessionNotFound,
    SessionRevoked,
    SwitchedTooOften,
    TooManyAttempts,
)
from common.errors import TokenExpired, TokenInvalid
from common.openapi import shapes
from common.openapi.operations import Operation, Operations
from environments.errors import EnvironmentNotFound

OPERATIONS: Final[Operations] = {
    "POST /v1/auth/login": Operation(
        tag="Sign in",
        problems=(
            InvalidCredentials,
            EnvironmentNotFound,
            TooManyAttempts,
            HashingBusy,
        ),
        request={"email": "alice@example.com", "password": "correct horse battery staple"},
        response={
            "status": "authenticated",
            "access_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
            "refresh_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
            "access_expires_at": 1795373616,
            "refresh_expires_at": 1795977516,
            "environment": {"id": "live", "name": "live"},
            "device_token": "01a2048d-92e1-7213-87f6-c990b2d80d7d.2f9b5785be81ee28caf0c23",
            "email_verified": False,
            "warnings": [],
        },
    ),
    "POST /v1/auth/logout": Operation(
        tag="Sign in",
        problems=(TokenInvalid,),
        request={"refresh_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl"},
    ),
    "POST /v1/auth/refresh": Operation(
        tag="Sign in",
        problems=(
            SessionRevoked,
            TokenExpired,
            TokenInvalid,
        ),
        request={"refresh_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl"},
        response={
            "access_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
            "refresh_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
            "access_expires_at": 1795373906,
            "refresh_expires_at": 1795977806,
        },
    ),
    "POST /v1/auth/signup": Operation(
        tag="Sign in",
        problems=(
            EmailTaken,
            TooManyAttempts,
            HashingBusy,
        ),
        request={
            "email": "alice@example.com",
            "password": "correct horse battery staple",
            "organization": "Example Ltd",
        },
        response={
            "access_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
            "refresh_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
            "access_expires_at": 1795373552,
            "refresh_expires_at": 1795977452,
            "environment": {"id": "live", "name": "live"},
            "email_verified": False,
        },
    ),
    "POST /v1/auth/switch": Operation(
        tag="Sign in",
        problems=(
            SessionRevoked,
            TokenExpired,
            TokenInvalid,
            EnvironmentNotFound,
            SwitchedTooOften,
        ),
        request={
            "refresh_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
            "environment": "sandbox",
        },
        response={
            "access_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
            "refresh_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
            "access_expires_at": 1795373606,
            "refresh_expires_at": 1795977506,
            "environment": {"id": "sandbox", "name": "sandbox"},
        },
    ),
    "GET /v1/permissions/effective": Operation(
        tag="Sign in",
        response={"roles": ["reader"], "permissions": {"sql": ["read"], "objects": ["read"]}},
    ),
    "GET /v1/whoami": Operation(
        tag="Sign in",
        response={
            "user_id": "01a2048c-8dcc-7491-a7b0-994dba59c6e5",
            "email": "x7k2m9@privaterelay.appleid.com",
            "email_verified": True,
            "org_id": 82,
            "organization": "Dora Lake",
            "environment": {"id": "live", "name": "live"},
            "roles": ["admin"],
            "labels": [],
            "session_id": "01a2048c-8dd6-76a8-8c3e-09b3a25e2c77",
            "aal": 1,
            "amr": ["fed"],
            "auth_time": 1795372649,
            "access_expires_at": 1795373549,
            "api_key_id": None,
        },
    ),
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
