"""The OpenAPI description of the operations of invitations."""

from typing import Final

from accounts.errors import (
    EmailTaken,
    HashingBusy,
    InvitationGone,
    InvitationNotFound,
    InvitingTooOften,
    TooManyAttempts,
    TooManyInvitations,
)
from common.openapi import shapes
from common.openapi.operations import Operation, Operations
from environments.errors import EnvironmentNotFound

OPERATIONS: Final[Operations] = {
    "GET /v1/invitations": Operation(
        tag="Invitations",
        response={
            "next": None,
            "previous": None,
            "results": [
                {
                    "id": "01a2048d-425e-7259-b37a-4539c4365986",
                    "email": "dora@example.com",
                    "roles": ["operator"],
                    "labels": ["sales"],
                    "state": "accepted",
                    "invited_by": "alice@example.com",
                    "created_at": "2026-11-22T18:38:16.152946Z",
                    "expires_at": "2026-11-29T18:38:16.152946Z",
                }
            ],
        },
    ),
    "POST /v1/invitations": Operation(
        tag="Invitations",
        problems=(
            TooManyInvitations,
            InvitingTooOften,
        ),
        request={"email": "bob@example.com", "roles": ["operator"]},
        response={
            "id": "01a2048d-425e-7259-b37a-4539c4365986",
            "email": "dora@example.com",
            "roles": ["operator"],
            "labels": ["sales"],
            "state": "pending",
            "invited_by": "alice@example.com",
            "created_at": "2026-11-22T18:38:16.152946Z",
            "expires_at": "2026-11-29T18:38:16.152946Z",
        },
    ),
    "DELETE /v1/invitations/{invitation_id}": Operation(
        tag="Invitations",
        path={"invitation_id": shapes.UUID},
        problems=(InvitationNotFound,),
    ),
    "POST /v1/invitations/accept": Operation(
        tag="Invitations",
        problems=(
            EnvironmentNotFound,
            EmailTaken,
            InvitationGone,
            TooManyAttempts,
            HashingBusy,
        ),
        request={
            "token": "k3J9vXq2TzW8mN5cR7bY1sD4fG6hL0pA",
            "password": "correct horse battery staple",
        },
        response={
            "status": "authenticated",
            "access_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
            "refresh_token": "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
            "access_expires_at": 1795373596,
            "refresh_expires_at": 1795977496,
            "environment": {"id": "live", "name": "live"},
            "email_verified": True,
            "warnings": [],
        },
    ),
    "POST /v1/invitations/preview": Operation(
        tag="Invitations",
        problems=(
            InvitationGone,
            TooManyAttempts,
        ),
        request={"token": "k3J9vXq2TzW8mN5cR7bY1sD4fG6hL0pA"},
        response={
            "email": "dora@example.com",
            "organization": "Alice's",
            "roles": ["reader"],
            "invited_by": "alice@example.com",
            "expires_at": "2026-11-29T18:38:16.487512Z",
        },
    ),
}
