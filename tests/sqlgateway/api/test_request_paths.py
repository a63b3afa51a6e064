"""The usual request is answered without DRF, any other by it, with the same answers."""

import json
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from tests import cast
from tests.cast import HANDLER

# DRF's way is taken for a content type with a parameter.
USUAL = "application/json"
UNUSUAL = "application/json; charset=utf-8"


@pytest.fixture
def member(databases: None) -> User:
    """Return the admin of an organization with databases."""
    return cast.member(cast.organization(), "alice@example.com")


def ask(token: str, body: bytes, kind: str, **headers: str) -> Any:
    client = Client(raise_request_exception=False)
    client.handler = HANDLER
    sent: dict[str, Any] = {"HTTP_AUTHORIZATION": f"Bearer {token}"} if token else {}
    # Any: the stubs take headers for the parameters that come before them.
    send: Any = client.generic
    return send("POST", "/v1/sql", body, content_type=kind, **sent, **headers)


def summary(response: Any) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Return status, body and headers without what differs from request to request."""
    body = json.loads(response.content)
    body.pop("request_id")
    body.pop("stats", None)
    changing = {"X-Request-Id", "Content-Length", "Allow"}
    headers = {name: value for name, value in response.items() if name not in changing}
    return response.status_code, body, headers


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"query": "SELECT 1 AS one"}', 200),
        (b'{"query": "SELECT $1::int AS one", "params": [1]}', 200),
        (b'{"query": "SELECT 1 AS one", "rows": "arrays"}', 200),
        (b'{"query": "SELECT nonesuch"}', 400),
        (b'{"query": "SELECT 1", "parms": []}', 400),
        (b'{"query": "SELECT 1\\u0000"}', 400),
        (b'{"query": ""}', 400),
        (b"{", 400),
        (b"[]", 400),
        (b'{"query": "' + b"x" * 2**20 + b'"}', 413),
    ],
)
def test_bodies_are_answered_alike(member: User, body: bytes, status: int) -> None:
    token = cast.signed_in(member).access_token
    usual, unusual = (summary(ask(token, body, kind)) for kind in (USUAL, UNUSUAL))
    assert usual == unusual
    assert usual[0] == status


@pytest.mark.parametrize("kind", [USUAL, UNUSUAL])
def test_neither_path_admits_another_tenant(member: User, kind: str) -> None:
    body = b'{"query": "SELECT 1"}'
    token = cast.signed_in(member).access_token
    assert ask("", body, kind).status_code == 401
    assert ask("garbage", body, kind).status_code == 401
    User.objects.filter(pk=member.pk).update(roles=["emperor"])
    assert ask(token, body, kind).status_code == 403
    User.objects.filter(pk=member.pk).update(is_active=False)
    assert ask(token, body, kind).status_code == 401


def test_what_cannot_be_read_or_answered_is_refused(member: User) -> None:
    token = cast.signed_in(member).access_token
    body = b'{"query": "SELECT 1"}'
    assert ask(token, body, "text/plain").status_code == 415
    assert ask(token, body, USUAL, HTTP_ACCEPT="image/png").status_code == 406
    assert ask(token, b"", USUAL).status_code == 400


def test_a_policy_on_second_factors_holds_on_both(member: User) -> None:
    token = cast.signed_in(member).access_token
    organization = member.organization
    organization.mfa_required, organization.mfa_grace_period_days = True, 0
    organization.save()
    for kind in (USUAL, UNUSUAL):
        answer = ask(token, b'{"query": "SELECT 1"}', kind)
        assert (answer.status_code, json.loads(answer.content)["code"]) == (
            403,
            "second_factor_due",
        )
