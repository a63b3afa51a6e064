"""The OpenAPI description of the operations of external sign-in and of domains."""

from typing import Final

from accounts.errors import EmailTaken, HashingBusy, SessionRevoked, TooManyAttempts
from common.errors import (
    DnsUnavailable,
    MethodNotAllowed,
    NotAuthenticated,
    PayloadTooLarge,
    TokenExpired,
    TokenInvalid,
)
from common.openapi import shapes
from common.openapi.operations import Operation, Operations
from environments.errors import EnvironmentNotFound
from oauth.errors import (
    AccessDenied,
    CodeGone,
    DomainNotAllowed,
    DomainTaken,
    DomainUnproven,
    EmailMissing,
    EmailUnverified,
    IdentityRefused,
    IdentityTaken,
    LastLoginMethod,
    LinkForeign,
    LinkRequired,
    ProviderNotConfigured,
    ProviderUnavailable,
    RedirectNotAllowed,
    StateInvalid,
    TooManyDomains,
)

PROVIDER_OPERATIONS: Final[Operations] = {
    "GET /v1/auth/identities": Operation(
        tag="Sign in with a provider",
        response={
            "next": None,
            "previous": None,
            "results": [
                {
                    "id": "01a2048d-0630-7663-98be-bf5af08f0be5",
                    "provider": "google",
                    "title": "Google",
                    "email": "work@example.org",
                    "is_private_email": False,
                    "username": "",
                    "name": "Dora at work",
                    "created_at": 1795372680,
                    "last_used_at": 1795372680,
                }
            ],
        },
    ),
    "GET /v1/sign-in-providers": Operation(
        tag="Sign in with a provider",
        response={
            "providers": [
                {
                    "name": "google",
                    "title": "Google",
                    "is_offered": True,
                    "member_count": 1,
                    "members": ["alice@example.com"],
                }
            ]
        },
    ),
    "DELETE /v1/auth/identities/{identity_id}": Operation(
        tag="Sign in with a provider",
        path={"identity_id": shapes.UUID},
        problems=(LastLoginMethod,),
    ),
    "GET /v1/auth/oauth/{provider}/callback": Operation(
        tag="Sign in with a provider",
        problems=(
            StateInvalid,
            ProviderNotConfigured,
            MethodNotAllowed,
            TooManyAttempts,
        ),
    ),
    "POST /v1/auth/oauth/{provider}/callback": Operation(
        tag="Sign in with a provider",
        problems=(
            StateInvalid,
            ProviderNotConfigured,
            MethodNotAllowed,
            PayloadTooLarge,
            TooManyAttempts,
        ),
    ),
    "POST /v1/auth/oauth/{provider}/link": Operation(
        tag="Sign in with a provider",
        problems=(
            RedirectNotAllowed,
            LinkForeign,
            ProviderNotConfigured,
            EmailTaken,
            IdentityTaken,
            CodeGone,
            TooManyAttempts,
            ProviderUnavailable,
        ),
        request={"code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"},
        response={
            "status": "started",
            "start_url": "https://zonal.example.com/v1/auth/oauth/google/start?ticket=",
            "expires_at": 1795373252,
        },
    ),
    "GET /v1/auth/oauth/{provider}/start": Operation(
        tag="Sign in with a provider",
        problems=(
            RedirectNotAllowed,
            EnvironmentNotFound,
            ProviderNotConfigured,
            CodeGone,
            TooManyAttempts,
        ),
    ),
    "GET /v1/auth/oauth/providers": Operation(
        tag="Sign in with a provider",
        response={
            "providers": [
                {
                    "name": "google",
                    "title": "Google",
                    "start_url": "https://zonal.example.com/v1/auth/oauth/google/start",
                }
            ]
        },
    ),
    "POST /v1/auth/oauth/token": Operation(
        tag="Sign in with a provider",
        problems=(
            IdentityRefused,
            NotAuthenticated,
            SessionRevoked,
            TokenExpired,
            TokenInvalid,
            AccessDenied,
            DomainNotAllowed,
            EmailMissing,
            EmailUnverified,
            LinkForeign,
            EnvironmentNotFound,
            EmailTaken,
            IdentityTaken,
            LinkRequired,
            CodeGone,
            TooManyAttempts,
            HashingBusy,
            ProviderUnavailable,
        ),
        request={
            "code": "k3J9vXq2TzW8mN5cR7bY1sD4fG6hL0pA",
            "code_verifier": "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
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


DOMAIN_OPERATIONS: Final[Operations] = {
    "GET /v1/domains": Operation(
        tag="Domains",
        response={
            "next": None,
            "previous": None,
            "results": [
                {
                    "id": "01a2048c-a2c1-771f-b342-1fc047a4c490",
                    "domain": "example.com",
                    "role": "operator",
                    "status": "verified",
                    "record": {
                        "type": "TXT",
                        "name": "_zonal-challenge.example.com",
                        "value": "zonal-domain-verification=Z7ttUHVG7F62HxoAPcWBsw",
                    },
                    "created_at": "2026-11-22T18:37:35.297113Z",
                    "verified_at": "2026-11-22T18:37:35.305023Z",
                }
            ],
        },
    ),
    "POST /v1/domains": Operation(
        tag="Domains",
        problems=(
            DomainTaken,
            TooManyDomains,
            DnsUnavailable,
        ),
        request={"domain": "example.com", "role": "reader"},
        response={
            "id": "01a2048c-a2c1-771f-b342-1fc047a4c490",
            "domain": "example.com",
            "role": "operator",
            "status": "pending",
            "record": {
                "type": "TXT",
                "name": "_zonal-challenge.example.com",
                "value": "zonal-domain-verification=Z7ttUHVG7F62HxoAPcWBsw",
            },
            "created_at": "2026-11-22T18:37:35.297113Z",
            "verified_at": None,
        },
    ),
    "DELETE /v1/domains/{domain_id}": Operation(
        tag="Domains",
        path={"domain_id": shapes.UUID},
    ),
    "POST /v1/domains/{domain_id}/verify": Operation(
        tag="Domains",
        path={"domain_id": shapes.UUID},
        problems=(
            DomainTaken,
            DomainUnproven,
            TooManyAttempts,
            DnsUnavailable,
        ),
        response={
            "id": "01a2048c-a2c1-771f-b342-1fc047a4c490",
            "domain": "example.com",
            "role": "operator",
            "status": "verified",
            "record": {
                "type": "TXT",
                "name": "_zonal-challenge.example.com",
                "value": "zonal-domain-verification=Z7ttUHVG7F62HxoAPcWBsw",
            },
            "created_at": "2026-11-22T18:37:35.297113Z",
            "verified_at": "2026-11-22T18:37:35.305023Z",
        },
    ),
}


OPERATIONS: Final[Operations] = {**PROVIDER_OPERATIONS, **DOMAIN_OPERATIONS}
