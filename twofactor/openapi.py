"""The OpenAPI description of challenges, methods, trusted devices and the policy."""

from typing import Final

from accounts.errors import HashingBusy, InvalidCredentials, SessionRevoked, TooManyAttempts
from common.errors import Forbidden, TokenExpired, TokenInvalid
from common.openapi import shapes
from common.openapi.operations import Operation, Operations
from oauth.errors import LastLoginMethod
from twofactor.errors import (
    ChallengeGone,
    ChannelUnavailable,
    CodeRejected,
    DeviceNotFound,
    FactorNotAllowed,
    FactorSlowed,
    FactorWornOut,
    MalformedCode,
    MalformedCredential,
    MethodNotEnabled,
    NoSecondFactor,
    PolicyLocksOut,
    RequiredByPolicy,
    SendingTooOften,
)

OPERATIONS: Final[Operations] = {
    "POST /v1/auth/2fa/backup-codes": Operation(
        tag="Second factor",
        problems=(
            FactorNotAllowed,
            NoSecondFactor,
        ),
        response={
            "backup_codes": [
                "VQZM-TP0P-5HGR-V5H1",
                "15NP-B03E-PXRG-75WR",
                "EDDG-BPDA-YEJ2-9K55",
                "01GZ-ZKK1-RJM0-VPAM",
                "M0P6-15VE-CYTH-SR5J",
                "VPP4-DSQS-4D7F-W0D0",
                "FBC8-ZBKF-V3BS-913J",
                "GV9Y-RPTQ-46VA-Q3SG",
                "P0VE-M3ZW-M07Y-A59V",
                "0VH6-577T-VMP4-7P39",
            ]
        },
    ),
    "GET /v1/auth/2fa/challenge": Operation(
        tag="Second factor",
        problems=(
            FactorWornOut,
            FactorNotAllowed,
            MethodNotEnabled,
            NoSecondFactor,
            FactorSlowed,
            SendingTooOften,
            ChannelUnavailable,
        ),
        response={
            "challenge_id": "XEDNqJ20Nhjh5ax2r97ywQ",
            "method": "email",
            "methods": ["email"],
            "expires_at": 1795373319,
            "attempts_left": 5,
            "delivery_hint": "a•••@example.com",
            "delivery": "queued",
        },
    ),
    "POST /v1/auth/2fa/challenge/{challenge_id}/verify": Operation(
        tag="Second factor",
        path={"challenge_id": shapes.BASE64URL},
        problems=(
            MalformedCode,
            MalformedCredential,
            CodeRejected,
            SessionRevoked,
            TokenExpired,
            TokenInvalid,
            FactorWornOut,
            FactorNotAllowed,
            MethodNotEnabled,
            ChallengeGone,
            FactorSlowed,
            HashingBusy,
        ),
        request={"code": "123456"},
        response={
            "status": "authenticated",
            "access_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
            "refresh_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
            "access_expires_at": 1795373616,
            "refresh_expires_at": 1795977516,
            "environment": {"id": "live", "name": "live"},
            "device_token": "01a2048d-92e1-7213-87f6-c990b2d80d7d.109d49b66e1d8ad4d59cf1e",
            "email_verified": False,
            "warnings": [],
        },
    ),
    "POST /v1/auth/2fa/policy/preview": Operation(
        tag="Organization policy",
        problems=(PolicyLocksOut,),
        request={"required": True, "grace_period_days": 14},
        response={
            "policy": {
                "required": True,
                "allowed_methods": ["totp", "webauthn"],
                "grace_period_days": 14,
                "grace_ends_at": 1795600000,
                "recovery_questions": False,
                "updated_at": None,
                "updated_by": None,
            },
            "affected_members": 1,
            "affected": [
                {
                    "user_id": "01a2048d-903a-75bd-a141-86b13a517b20",
                    "email": "bob@example.com",
                    "restricted_from": 1795600000,
                    "at_once": False,
                }
            ],
            "trusted_devices": 3,
        },
    ),
    "GET /v1/auth/2fa/compliance": Operation(
        tag="Organization policy",
        problems=(Forbidden,),
        response={
            "compliant": True,
            "required": False,
            "enabled_methods": ["totp", "sms", "backup_codes"],
            "allowed_methods": ["totp", "sms", "email", "webauthn"],
            "grace_ends_at": None,
            "days_left": None,
            "reasons": [],
        },
    ),
    "PUT /v1/auth/2fa/default": Operation(
        tag="Second factor",
        problems=(
            FactorNotAllowed,
            MethodNotEnabled,
        ),
        request={"method": "totp"},
        response={
            "enabled": True,
            "required": False,
            "enabled_methods": ["totp", "email", "backup_codes"],
            "default_method": "email",
            "phone_verified": False,
            "backup_codes_remaining": 10,
        },
    ),
    "DELETE /v1/auth/2fa/method/{method}": Operation(
        tag="Second factor",
        problems=(
            LastLoginMethod,
            MethodNotEnabled,
            RequiredByPolicy,
        ),
    ),
    "GET /v1/auth/2fa/factors": Operation(
        tag="Second factor",
        response={
            "factors": [
                {
                    "name": "totp",
                    "challenge_name": "totp",
                    "label": "Authenticator app",
                    "is_second_factor": True,
                },
                {
                    "name": "backup_codes",
                    "challenge_name": "backup_code",
                    "label": "Backup code",
                    "is_second_factor": False,
                },
            ]
        },
    ),
    "GET /v1/auth/2fa/policy": Operation(
        tag="Organization policy",
        response={
            "required": False,
            "allowed_methods": ["totp", "sms", "email", "webauthn"],
            "grace_period_days": 7,
            "grace_ends_at": None,
            "recovery_questions": False,
            "updated_at": None,
            "updated_by": None,
        },
    ),
    "PUT /v1/auth/2fa/policy": Operation(
        tag="Organization policy",
        problems=(PolicyLocksOut,),
        request={
            "required": True,
            "allowed_methods": ["totp", "webauthn", "backup_codes"],
            "grace_period_days": 14,
        },
        response={
            "required": True,
            "allowed_methods": ["totp", "sms", "email", "webauthn"],
            "grace_period_days": 0,
            "grace_ends_at": None,
            "recovery_questions": False,
            "updated_at": 1795372716,
            "updated_by": "01a2048d-9284-769c-bb67-05a12f586482",
        },
    ),
    "GET /v1/auth/2fa/status": Operation(
        tag="Second factor",
        response={
            "enabled": False,
            "required": False,
            "enabled_methods": [],
            "default_method": None,
            "phone_verified": False,
            "backup_codes_remaining": 0,
        },
    ),
    "GET /v1/auth/2fa/trusted-devices": Operation(
        tag="Second factor",
        response={
            "next": None,
            "previous": None,
            "results": [
                {
                    "id": "01a2048d-9514-72e9-a85e-37156ef233cc",
                    "name": "Laptop",
                    "created_at": 1795372717,
                    "last_used_at": 1795372717,
                    "expires_at": 1797964717,
                }
            ],
        },
    ),
    "DELETE /v1/auth/2fa/trusted-devices/{device_id}": Operation(
        tag="Second factor",
        path={"device_id": shapes.UUID},
        problems=(DeviceNotFound,),
    ),
    "POST /v1/auth/reauthenticate": Operation(
        tag="Sign in",
        problems=(
            InvalidCredentials,
            TooManyAttempts,
            HashingBusy,
        ),
        request={"password": "correct horse battery staple"},
    ),
}
