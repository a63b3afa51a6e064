"""Who, where and what role: one query, and the row decides on every request."""

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.models import Session, User
from environments.models import Environment
from tests.cast import signed_in

pytestmark = pytest.mark.django_db


def test_whoami_returns_the_published_fields(bob: User) -> None:
    User.objects.filter(pk=bob.pk).update(labels=["night shift"])
    who = signed_in(bob).get("/v1/whoami").body
    session = Session.objects.get()
    assert who == {
        "user_id": str(bob.pk),
        "email": "bob@example.com",
        "email_verified": False,
        "org_id": bob.organization_id,
        "organization": "Alice's",
        "environment": {"id": "live", "name": "live"},
        "roles": ["reader"],
        "labels": ["night shift"],
        "session_id": str(session.pk),
        "aal": 1,
        "amr": ["pwd"],
        "auth_time": int(session.auth_time.timestamp()),
        "access_expires_at": int(session.rotated_at.timestamp()) + 900,
        "api_key_id": None,
    }


def test_an_authenticated_request_costs_one_query(
    bob: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    caller = signed_in(bob)
    with django_assert_num_queries(2):
        caller.get("/v1/whoami")  # the first use of a generation confirms its delivery
    with django_assert_num_queries(1):
        caller.get("/v1/whoami")
    with django_assert_num_queries(1):
        caller.get("/v1/permissions/effective")


def test_a_role_change_applies_to_the_next_request(bob: User) -> None:
    caller = signed_in(bob)
    body = {"id": "stage"}
    assert caller.post("/v1/environments", body).status == 403
    User.objects.filter(pk=bob.pk).update(roles=["admin"])
    assert caller.post("/v1/environments", body).status == 201


def test_a_disabled_user_is_out_on_the_next_request(bob: User) -> None:
    caller = signed_in(bob)
    User.objects.filter(pk=bob.pk).update(is_active=False)
    assert caller.get("/v1/whoami").code == "session_revoked"


def test_a_deleted_environment_is_closed_on_the_next_request(bob: User) -> None:
    caller = signed_in(bob, "sandbox")
    Environment.objects.filter(slug="sandbox").update(deleted_at=timezone.now())
    assert caller.get("/v1/whoami").code == "session_revoked"


def test_effective_permissions_come_from_the_table(alice: User, bob: User) -> None:
    admin = signed_in(alice).get("/v1/permissions/effective").body
    assert admin["roles"] == ["admin"]
    assert set(admin["permissions"]) == {
        "sql",
        "objects",
        "schema",
        "environments",
        "members",
        "policy",
        "nodes",
        "buckets",
        "audit",
        "billing",
        "api_keys",
        "webhooks",
        "organization",
    }
    assert all(
        actions == ["create", "read", "update", "delete"]
        for actions in admin["permissions"].values()
    )
    reader = signed_in(bob).get("/v1/permissions/effective").body
    assert reader["permissions"] == {"sql": ["read"], "objects": ["read"]}


def test_an_unknown_role_has_no_permission(bob: User) -> None:
    User.objects.filter(pk=bob.pk).update(roles=["emperor"])
    assert signed_in(bob).get("/v1/permissions/effective").body["permissions"] == {}
