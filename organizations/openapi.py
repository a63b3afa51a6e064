"""The OpenAPI description of the operations on organizations, members and invitations."""

from typing import Any, Final

from accounts.errors import EmailTaken, HashingBusy, TooManyAttempts
from common.openapi import shapes
from common.openapi.operations import Operation, Operations
from environments.errors import EnvironmentNotFound
from organizations.errors import (
    DeletionBegan,
    DeletionBlocked,
    DeletionNotFound,
    DeletionRequested,
    ExportGone,
    ExportNotFound,
    ExportsFull,
    ExportUnderWay,
    InvitationGone,
    InvitationNotFound,
    InvitingTooOften,
    LastAdmin,
    MemberNotFound,
    NameMismatch,
    RequestedTooOften,
    TooManyExports,
    TooManyInvitations,
)

INVITATION_OPERATIONS: Final[Operations] = {
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


CREATED: Final = {
    "ends": [
        {
            "kind": "access_key",
            "id": "ZKW47FP36BASBTVPHMAU",
            "name": "nightly backup",
            "environment": "live",
        }
    ],
    "stays": [
        {
            "kind": "webhook",
            "id": "01a2048d-5eee-7420-b4f2-736690f1aef8",
            "name": "crm.example.com",
            "environment": None,
        }
    ],
    "is_complete": True,
}

MEMBER_OPERATIONS: Final[Operations] = {
    "GET /v1/members": Operation(
        tag="Members",
        response={
            "next": "http://testserver/v1/members?cursor=cD0wMWEyMDQ4ZC01ZjAwLTc3",
            "previous": None,
            "results": [
                {
                    "user_id": "01a2048d-5f00-777f-b99c-b49dc4273db8",
                    "email": "alice@example.com",
                    "email_verified": False,
                    "roles": ["admin"],
                    "derived_roles": [],
                    "labels": [],
                    "disabled": False,
                    "created_at": "2026-11-22T18:38:23.488362Z",
                    "last_login_at": "2026-11-22T18:38:23.491070Z",
                }
            ],
        },
    ),
    "GET /v1/members/{user_id}": Operation(
        tag="Members",
        path={"user_id": shapes.UUID},
        problems=(MemberNotFound,),
        response={
            "user_id": "01a2048d-5eee-7420-b4f2-736690f1aef9",
            "email": "bob@example.com",
            "email_verified": True,
            "roles": ["reader"],
            "derived_roles": [],
            "labels": ["sales"],
            "disabled": False,
            "created_at": "2026-11-22T18:38:23.471091Z",
            "last_login_at": "2026-11-22T18:38:23.473363Z",
        },
    ),
    "PATCH /v1/members/{user_id}": Operation(
        tag="Members",
        path={"user_id": shapes.UUID},
        problems=(
            MemberNotFound,
            LastAdmin,
        ),
        request={"roles": ["operator"], "labels": ["billing"]},
        response={
            "user_id": "01a2048d-4ba0-700e-aa35-5053ecea3eaf",
            "email": "eve@example.com",
            "email_verified": False,
            "roles": ["reader"],
            "derived_roles": [],
            "labels": [],
            "disabled": False,
            "created_at": "2026-11-22T18:38:18.528246Z",
            "last_login_at": "2026-11-22T18:38:18.529946Z",
            "created": CREATED,
        },
    ),
    "GET /v1/members/{user_id}/created": Operation(
        tag="Members",
        path={"user_id": shapes.UUID},
        problems=(MemberNotFound,),
        response=CREATED,
    ),
    "DELETE /v1/members/{user_id}": Operation(
        tag="Members",
        path={"user_id": shapes.UUID},
        problems=(
            MemberNotFound,
            LastAdmin,
        ),
        response={"created": CREATED},
    ),
}


_DUE: Final[dict[str, Any]] = {
    "id": 2,
    "name": "Lakes & Sons",
    "created_at": "2026-11-22T18:38:27.068346Z",
    "deletion_due_at": "2026-11-30T09:12:00.000000Z",
    "deletion_requested_by": "alice@example.com",
}
_KEPT: Final[dict[str, Any]] = {**_DUE, "deletion_due_at": None, "deletion_requested_by": ""}
_EXPORT: Final[dict[str, Any]] = {
    "id": "01a2048d-6b6c-7296-8654-b75268988c34",
    "state": "ready",
    "requested_by": "alice@example.com",
    "requested_at": "2026-11-23T09:12:00.000000Z",
    "finished_at": "2026-11-23T09:12:41.000000Z",
    "expires_at": "2026-11-26T09:12:41.000000Z",
    "size_bytes": 73400320,
    "failure": "",
    "missing": [],
}
_BY_ID: Final = {"export_id": shapes.UUID}

ORGANIZATION_OPERATIONS: Final[Operations] = {
    "POST /v1/organization/deletion": Operation(
        tag="Organization",
        problems=(NameMismatch, DeletionRequested, DeletionBlocked, RequestedTooOften),
        request={"name": "Lakes & Sons"},
        response=_DUE,
    ),
    "DELETE /v1/organization/deletion": Operation(
        tag="Organization", problems=(DeletionNotFound, DeletionBegan), response=_KEPT
    ),
    "GET /v1/organization/exports": Operation(
        tag="Organization", response={"next": None, "previous": None, "results": [_EXPORT]}
    ),
    "POST /v1/organization/exports": Operation(
        tag="Organization",
        problems=(ExportUnderWay, TooManyExports, RequestedTooOften, ExportsFull),
        response={
            **_EXPORT,
            "state": "queued",
            "finished_at": None,
            "expires_at": None,
            "size_bytes": 0,
        },
    ),
    "GET /v1/organization/exports/{export_id}": Operation(
        tag="Organization", path=_BY_ID, problems=(ExportNotFound,), response=_EXPORT
    ),
    "GET /v1/organization/exports/{export_id}/archive": Operation(
        tag="Organization",
        path=_BY_ID,
        problems=(ExportNotFound, ExportGone),
        streams={"application/zip": {"type": "string", "format": "binary"}},
    ),
    "DELETE /v1/organization/exports/{export_id}": Operation(
        tag="Organization", path=_BY_ID, problems=(ExportNotFound, ExportUnderWay)
    ),
}


OPERATIONS: Final[Operations] = {
    **INVITATION_OPERATIONS,
    **MEMBER_OPERATIONS,
    **ORGANIZATION_OPERATIONS,
}
