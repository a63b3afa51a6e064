"""Sign-up creates an organization, its environments and its admin, or none of them."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from pytest_django import Settings

from accounts.models import User
from audit.models import AuditEvent
from environments.models import Environment, Organization
from tests.cast import PASSWORD, Answer, Caller

pytestmark = pytest.mark.django_db
PATH = "/v1/auth/signup"


def sign_up(email: str = "alice@example.com", **more: Any) -> Answer:
    return Caller().post(PATH, {"email": email, "password": PASSWORD, **more})


def test_sign_up_answers_a_token_pair_for_live() -> None:
    answer = sign_up()
    assert answer.status == 201
    assert set(answer.body) == {
        "access_token",
        "refresh_token",
        "access_expires_at",
        "refresh_expires_at",
        "environment",
        "email_verified",
    }
    assert answer.body["environment"] == {"id": "live", "name": "live"}
    assert answer.headers["Cache-Control"] == "no-store"
    who = Caller(answer.body["access_token"]).get("/v1/whoami").body
    assert who["email"] == "alice@example.com"
    assert who["roles"] == ["admin"]
    assert who["environment"] == {"id": "live", "name": "live"}


def test_sign_up_makes_the_built_in_environments_and_an_audit_event() -> None:
    sign_up(organization="Alice & Co")
    organization = Organization.objects.get(name="Alice & Co")
    slugs = Environment.objects.filter(organization=organization).values_list("slug", flat=True)
    assert sorted(slugs) == ["live", "sandbox"]
    tags = AuditEvent.objects.filter(organization_id=organization.pk).values_list("tag", flat=True)
    assert set(tags) == {"api:organization:create", "api:session:create"}


def test_an_address_with_a_very_long_domain_can_sign_up() -> None:
    domain = ".".join(["d" * 61] * 4) + ".de"
    assert len(domain) == 250
    assert sign_up(f"a@{domain}").status == 201


def test_a_taken_address_is_409_however_it_is_spelled() -> None:
    sign_up("alice@example.com")
    answer = sign_up("ALICE@Example.com")
    assert (answer.status, answer.code) == (409, "email_taken")
    assert Organization.objects.count() == 1


@pytest.mark.parametrize(
    ("password", "code"),
    [
        ("short", "password_too_short"),
        ("password123", "password_too_common"),
        ("alice@example.com", "password_too_similar"),
        ("zonalzonal", "password_too_similar"),
        ("x" * 257, "password_too_long"),
    ],
)
def test_a_weak_password_is_refused_by_name(password: str, code: str) -> None:
    answer = sign_up(password=password)
    assert answer.status == 400
    assert [(error["field"], error["code"]) for error in answer.body["errors"]] == [
        ("password", code)
    ]
    assert not User.objects.exists()


def test_a_password_is_the_same_however_its_accents_are_composed() -> None:
    assert sign_up(password="pa\u0301ssphrase-of-hers").status == 201
    answer = Caller().post(
        "/v1/auth/login",
        {"email": "alice@example.com", "password": "p\u00e1ssphrase-of-hers"},
    )
    assert answer.status == 200


def test_an_unknown_field_is_named() -> None:
    answer = sign_up(organisation="typo")
    assert answer.status == 400
    assert answer.body["errors"] == [
        {"field": "organisation", "code": "unknown", "message": "There is no such field."}
    ]


def test_of_many_unknown_fields_some_are_named() -> None:
    answer = Caller().post(PATH, {f"field_{number}": 0 for number in range(3000)})
    assert answer.status == 400
    assert len(answer.body["errors"]) == 20


def test_missing_fields_are_all_named(anyone: Caller) -> None:
    answer = anyone.post(PATH, {})
    assert {error["field"] for error in answer.body["errors"]} == {"email", "password"}


def test_the_limit_counts_refused_sign_ups_too(settings: Settings) -> None:
    settings.ACCOUNTS = replace(settings.ACCOUNTS, signups_per_hour=2)
    sign_up("alice@example.com")
    assert sign_up("alice@example.com").status == 409
    answer = sign_up("bob@example.com")
    assert (answer.status, answer.code) == (429, "too_many_attempts")
    assert 0 < int(answer.headers["Retry-After"]) <= 3600


@pytest.mark.django_db(transaction=True)
def test_two_concurrent_sign_ups_of_one_address_give_one_account() -> None:
    def once(_: int) -> int:
        try:
            return sign_up().status
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        statuses = sorted(pool.map(once, range(4)))
    assert statuses == [201, 409, 409, 409]
    assert Organization.objects.count() == 1
    assert User.objects.count() == 1
