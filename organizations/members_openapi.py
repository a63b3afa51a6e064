"""The OpenAPI description of the operations of members."""

from typing import Final

from accounts.errors import LastAdmin, MemberNotFound
from common.openapi import shapes
from common.openapi.operations import Operation, Operations

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

OPERATIONS: Final[Operations] = {
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
