"""The OpenAPI description of passkeys, as a factor and to sign in."""

from typing import Final

from accounts.errors import TooManyAttempts
from common.openapi import shapes
from common.openapi.operations import Operation, Operations
from environments.errors import EnvironmentNotFound
from oauth.errors import LastLoginMethod
from twofactor.errors import (
    ChallengeGone,
    ChannelUnavailable,
    CredentialTaken,
    EnrolmentGone,
    FactorNotAllowed,
    MalformedCredential,
    PasskeyNotFound,
    PasskeyRejected,
    RequiredByPolicy,
    TooManyPasskeys,
)

OPERATIONS: Final[Operations] = {
    "GET /v1/auth/2fa/webauthn/credentials": Operation(
        tag="Second factor",
        response={
            "next": None,
            "previous": None,
            "results": [
                {
                    "credential_id": "C6wCd-ceDXzjwIO_ggY3mnjzXE0ICMP6zf6l07anGEw",
                    "name": "Second",
                    "created_at": 1795372733,
                    "last_used_at": None,
                    "rp_id": "app.example.com",
                    "transports": ["internal", "usb"],
                    "backup_eligible": False,
                    "user_verified": True,
                }
            ],
        },
    ),
    "DELETE /v1/auth/2fa/webauthn/credentials/{credential_id}": Operation(
        tag="Second factor",
        path={"credential_id": shapes.BASE64URL},
        problems=(
            PasskeyNotFound,
            LastLoginMethod,
            RequiredByPolicy,
        ),
    ),
    "POST /v1/auth/2fa/webauthn/register": Operation(
        tag="Second factor",
        problems=(
            FactorNotAllowed,
            TooManyPasskeys,
            ChannelUnavailable,
        ),
        request={"display_name": "Alice"},
        response={
            "creation_options": {
                "rp": {"name": "Zonal", "id": "localhost"},
                "user": {
                    "id": "AaIEjQt_cZCQ9eglA6a3rQ",
                    "name": "dora@example.com",
                    "displayName": "dora@example.com",
                },
                "challenge": "oXmk7YYmPrqofQ22QXYuPTqTbXcyrSRm7_QwavzOCXM",
                "pubKeyCredParams": [
                    {"type": "public-key", "alg": -7},
                    {"type": "public-key", "alg": -8},
                    {"type": "public-key", "alg": -257},
                ],
                "timeout": 300000,
                "excludeCredentials": [],
                "authenticatorSelection": {
                    "residentKey": "preferred",
                    "requireResidentKey": False,
                    "userVerification": "preferred",
                },
                "attestation": "none",
            },
            "session_data": {"session_id": "2D9pOFwe5-QBrai88fa9Lg"},
        },
    ),
    "POST /v1/auth/2fa/webauthn/register/finish": Operation(
        tag="Second factor",
        problems=(
            MalformedCredential,
            FactorNotAllowed,
            CredentialTaken,
            TooManyPasskeys,
            EnrolmentGone,
        ),
        request={
            "session_id": "01a20495-5ec6-74e4-b71e-b3c97ffd52bf",
            "credential": {
                "id": "btvfrYVEYb1yORHu17",
                "rawId": "btvfrYVEYb1yORHu17",
                "type": "public-key",
                "response": {"clientDataJSON": "e30", "attestationObject": "o2NmbXRkbm9uZQ"},
            },
            "credential_name": "Laptop",
        },
        response={
            "credential_id": "btvfrYVEYb1yORHu17-NrXcgoSYvB09mg3My56NMozk",
            "name": "Passkey",
            "created_at": 1795372741,
            "status": "authenticated",
            "access_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
            "refresh_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
            "access_expires_at": 1795373641,
            "refresh_expires_at": 1795977541,
            "environment": {"id": "live", "name": "live"},
            "email_verified": False,
            "warnings": [],
        },
    ),
    "POST /v1/auth/passkey/finish": Operation(
        tag="Sign in",
        problems=(
            MalformedCredential,
            PasskeyRejected,
            EnvironmentNotFound,
            ChallengeGone,
            TooManyAttempts,
            ChannelUnavailable,
        ),
        request={
            "challenge_id": "01a20495-5ec6-74e4-b71e-b3c97ffd52bf",
            "credential": {
                "id": "btvfrYVEYb1yORHu17",
                "rawId": "btvfrYVEYb1yORHu17",
                "type": "public-key",
                "response": {
                    "clientDataJSON": "e30",
                    "authenticatorData": "SZYN5Y",
                    "signature": "MEUCIQ",
                },
            },
        },
        response={
            "status": "authenticated",
            "access_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
            "refresh_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
            "access_expires_at": 1795373632,
            "refresh_expires_at": 1795977532,
            "environment": {"id": "live", "name": "live"},
            "email_verified": False,
            "warnings": [],
        },
    ),
    "POST /v1/auth/passkey/start": Operation(
        tag="Sign in",
        problems=(
            TooManyAttempts,
            ChannelUnavailable,
        ),
        request={"email": "alice@example.com"},
        response={
            "challenge_id": "ikLvkQcm6v5TnzZzBrLOEA",
            "expires_at": 1795373031,
            "request_options": {
                "challenge": "NCSBBvEodPy9rDFQyiMP35reOEaIN22knm97vPfh4Qs",
                "timeout": 300000,
                "rpId": "app.example.com",
                "allowCredentials": [],
                "userVerification": "required",
            },
        },
    ),
}
