"""The OpenAPI description of the operations of recovery."""

from typing import Final

from accounts.errors import EmailTaken, HashingBusy, InvalidCredentials, TooManyAttempts
from common.openapi import shapes
from common.openapi.operations import Operation, Operations
from recovery.errors import (
    MalformedRecoveryToken,
    NoIndependentFactor,
    OwnFactors,
    QuestionsDisabled,
    RecoveryChallengeRequired,
    RecoveryGone,
    RecoveryNotDue,
    RecoveryTokenRejected,
    RecoveryTooOften,
)
from twofactor.errors import (
    ChallengeGone,
    ChannelUnavailable,
    CodeRejected,
    FactorNotAllowed,
    FactorSlowed,
    FactorWornOut,
    MalformedCode,
    MalformedCredential,
    MethodNotEnabled,
    SendingTooOften,
)

OPERATIONS: Final[Operations] = {
    "POST /v1/auth/recovery/answers": Operation(
        tag="Recovery",
        problems=(
            RecoveryGone,
            RecoveryTooOften,
            HashingBusy,
        ),
        request={
            "recovery_id": "01a20495-5ec6-74e4-b71e-b3c97ffd52bf",
            "answers": {"first_school": "Hill Road", "first_pet": "Rex", "street": "Elm Street"},
        },
        response={"expires_at": 1795374553},
    ),
    "POST /v1/auth/recovery/cancel": Operation(
        tag="Recovery",
        problems=(
            MalformedRecoveryToken,
            RecoveryGone,
        ),
        request={"token": "4GQ7W1ZK9N0XTR5E8MVB2HC6YD"},
    ),
    "POST /v1/auth/recovery/challenge": Operation(
        tag="Recovery",
        problems=(
            FactorWornOut,
            FactorNotAllowed,
            MethodNotEnabled,
            NoIndependentFactor,
            RecoveryGone,
            FactorSlowed,
            SendingTooOften,
            ChannelUnavailable,
        ),
        request={"reset_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl", "method": "totp"},
        response={
            "challenge_id": "ZqIOiTtJMhbVh7wE_XEdzg",
            "method": "webauthn",
            "methods": ["webauthn"],
            "expires_at": 1795373350,
            "attempts_left": 5,
            "delivery_hint": None,
            "request_options": {
                "challenge": "xvEbIK1fTJ2K5LTxVXYsUkqS6PvZo76pMhz-M9eQRyc",
                "timeout": 600000,
                "rpId": "localhost",
                "allowCredentials": [
                    {
                        "id": "8arOfGXjuoAtb8dkecEkhGim7gd2UlpIlCPuavV1kw8",
                        "type": "public-key",
                        "transports": ["internal", "usb"],
                    }
                ],
                "userVerification": "preferred",
            },
        },
    ),
    "POST /v1/auth/recovery/complete": Operation(
        tag="Recovery",
        problems=(
            MalformedCode,
            MalformedCredential,
            CodeRejected,
            FactorWornOut,
            FactorNotAllowed,
            RecoveryChallengeRequired,
            EmailTaken,
            MethodNotEnabled,
            NoIndependentFactor,
            RecoveryNotDue,
            ChallengeGone,
            RecoveryGone,
            FactorSlowed,
            TooManyAttempts,
            HashingBusy,
        ),
        request={
            "reset_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
            "password": "an even longer staple of batteries",
        },
        response={
            "status": "mfa_enrollment_required",
            "mfa_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
            "mfa_expires_at": 1795459747,
            "allowed_methods": ["totp", "sms", "email", "webauthn"],
        },
    ),
    "POST /v1/auth/recovery/initiate": Operation(
        tag="Recovery",
        problems=(
            RecoveryTooOften,
            TooManyAttempts,
            HashingBusy,
            ChannelUnavailable,
        ),
        request={"org_id": 1, "email": "alice@example.com", "method": "email"},
        response={
            "recovery_id": "XJllw8gsPZvAOzAwya06OQ",
            "expires_at": 1795374553,
            "questions": [
                {
                    "question_id": "dream_job",
                    "question": "What did you want to become when you were ten?",
                },
                {
                    "question_id": "first_concert",
                    "question": "Which was the first concert you went to, and where?",
                },
                {"question_id": "lost_thing", "question": "Which lost thing do you miss most?"},
            ],
        },
    ),
    "POST /v1/auth/recovery/prove": Operation(
        tag="Recovery",
        problems=(
            MalformedCode,
            MalformedCredential,
            CodeRejected,
            InvalidCredentials,
            FactorWornOut,
            NoIndependentFactor,
            RecoveryNotDue,
            ChallengeGone,
            RecoveryGone,
            FactorSlowed,
            TooManyAttempts,
            HashingBusy,
        ),
        request={
            "reset_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
            "password": "correct horse battery staple",
        },
        response={
            "status": "delayed",
            "reset_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
            "effective_at": 1795459146,
            "expires_at": 1795718346,
        },
    ),
    "GET /v1/auth/recovery/questions": Operation(
        tag="Recovery",
        response={
            "enabled": False,
            "catalogue": [
                {
                    "question_id": "childhood_friend",
                    "question": "What was the full name of your best friend as a child?",
                },
                {
                    "question_id": "childhood_phone",
                    "question": "What was the first phone number you knew by heart?",
                },
                {
                    "question_id": "dream_job",
                    "question": "What did you want to become when you were ten?",
                },
                {
                    "question_id": "first_boss",
                    "question": "What was the full name of your first boss?",
                },
            ],
            "answered": [],
        },
    ),
    "PUT /v1/auth/recovery/questions": Operation(
        tag="Recovery",
        problems=(
            QuestionsDisabled,
            HashingBusy,
        ),
        request={
            "answers": {"first_school": "Hill Road", "first_pet": "Rex", "street": "Elm Street"}
        },
        response={
            "enabled": True,
            "catalogue": [
                {
                    "question_id": "childhood_friend",
                    "question": "What was the full name of your best friend as a child?",
                },
                {
                    "question_id": "childhood_phone",
                    "question": "What was the first phone number you knew by heart?",
                },
                {
                    "question_id": "dream_job",
                    "question": "What did you want to become when you were ten?",
                },
                {
                    "question_id": "first_boss",
                    "question": "What was the full name of your first boss?",
                },
            ],
            "answered": ["dream_job", "first_concert", "lost_thing"],
        },
    ),
    "POST /v1/auth/recovery/verify": Operation(
        tag="Recovery",
        problems=(
            MalformedRecoveryToken,
            RecoveryTokenRejected,
            RecoveryGone,
        ),
        request={"recovery_id": "01a20495-5ec6-74e4-b71e-b3c97ffd52bf", "token": "12345678"},
        response={
            "reset_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
            "expires_at": 1795373314,
            "next": "password",
            "new_account_offered": False,
            "methods": [],
        },
    ),
    "POST /v1/members/{user_id}/factors/reset": Operation(
        tag="Members",
        path={"user_id": shapes.UUID},
        problems=(OwnFactors,),
        request={"reason": "The phone was lost; identity checked on a call."},
    ),
}
