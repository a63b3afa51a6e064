"""The OpenAPI description of the operations of sign-in at a terminal."""

from typing import Final

from accounts.errors import InvalidCredentials, TerminalSignInGone, TooManyAttempts
from common.openapi import shapes
from common.openapi.operations import Operation, Operations
from environments.errors import EnvironmentNotFound

_ID: Final = "Qh1wDXrM2TqCk1zQ8YV0e1yqH3bQ2m4m5v0cJr5Xw1E"
_PATH: Final = {"request_id": shapes.BASE64URL}
_CODE: Final = "p0oT5TQm3HkqQmV5m1x8h4rQvFh2m7bq1WcJ8eR3s2A"

OPERATIONS: Final[Operations] = {
    "POST /v1/auth/terminal": Operation(
        tag="Sign in",
        problems=(TooManyAttempts,),
        request={
            "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
            "host": "laptop",
            "port": 49152,
        },
        response={
            "request_id": _ID,
            "matching_code": "K7QM-2XRA",
            "page_url": f"https://zonal.example.com/console/terminal#request={_ID}",
            "expires_at": 1795373252,
        },
    ),
    "GET /v1/auth/terminal/{request_id}": Operation(
        tag="Sign in",
        path=_PATH,
        problems=(TerminalSignInGone,),
        response={
            "matching_code": "K7QM-2XRA",
            "host": "laptop",
            "program": "zonal",
            "address": "192.0.2.7",
            "is_same_address": True,
            "environment": "live",
            "created_at": 1795372652,
            "expires_at": 1795373252,
        },
    ),
    "POST /v1/auth/terminal/{request_id}/allow": Operation(
        tag="Sign in",
        path=_PATH,
        problems=(TerminalSignInGone, EnvironmentNotFound),
        response={"code": _CODE, "port": 49152, "expires_at": 1795372772},
    ),
    "POST /v1/auth/terminal/{request_id}/deny": Operation(
        tag="Sign in", path=_PATH, problems=(TerminalSignInGone,), response={"port": 49152}
    ),
    "POST /v1/auth/terminal/token": Operation(
        tag="Sign in",
        problems=(InvalidCredentials, EnvironmentNotFound, TerminalSignInGone),
        request={
            "code": _CODE,
            "code_verifier": "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
        },
        response={
            "status": "authenticated",
            "access_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
            "refresh_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
            "access_expires_at": 1795373616,
            "refresh_expires_at": 1795977516,
            "environment": {"id": "live", "name": "live"},
            "email_verified": True,
            "warnings": [],
        },
    ),
}
