"""Every error is a problem document, wherever it is raised."""

import json
from functools import partial
from threading import Barrier
from typing import Any

import pytest
from django.db import OperationalError, transaction
from django.test import Client
from rest_framework.response import Response

from accounts.models import User
from common import problems
from tests import conformance
from tests.cast import HANDLER, Caller, signed_in
from tests.parallel import at_once

LOGIN = "/v1/auth/login"


def raw(method: str, path: str, data: bytes = b"", **options: Any) -> Any:
    client = Client(raise_request_exception=False)
    client.handler = HANDLER
    return client.generic(method, path, data, **options)


def check(response: Any, status: int, code: str) -> dict[str, Any]:
    assert response.status_code == status
    assert response["Content-Type"] == "application/problem+json"
    body: dict[str, Any] = json.loads(response.content)
    assert (body["status"], body["code"]) == (status, code)
    assert body["request_id"] == response["X-Request-Id"]
    assert body["type"] == f"urn:zonal:problem:{code}"
    return body


@pytest.mark.parametrize("path", ["/nowhere", "/v1", "/v1/", "/v1/whoami/", "/v1/sql/x/y"])
def test_unknown_paths_are_404(path: str) -> None:
    body = check(raw("GET", path), 404, "not_found")
    detail = "The operations are listed at /v1/docs."
    assert body.get("detail") == (detail if path.startswith("/v1") else None)


def test_a_wrong_method_is_405(db: None) -> None:
    check(raw("PUT", LOGIN), 405, "method_not_allowed")
    check(raw("BREW", LOGIN), 405, "method_not_allowed")
    assert raw("PUT", LOGIN)["Allow"] == "POST"


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain", "text/xml"])
def test_another_content_type_is_415(db: None, kind: str) -> None:
    body = check(raw("POST", LOGIN, b"a=b", content_type=kind), 415, "unsupported_media_type")
    assert body["detail"] == "Send application/json."


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b'"x"', b"null", b"1", b'{"a": NaN}', b"\xff\xfe", b"[" * 100_000]
)
def test_a_body_that_is_not_a_json_object_is_400(db: None, body: bytes) -> None:
    response = raw("POST", LOGIN, body, content_type="application/json")
    assert response.status_code in {400, 413}
    if len(body) < 65536:
        check(response, 400, "malformed_json")


def test_a_body_over_the_limit_is_413(db: None) -> None:
    body = json.dumps({"email": "x" * 70_000}).encode()
    check(raw("POST", LOGIN, body, content_type="application/json"), 413, "payload_too_large")


def test_an_unsupported_accept_header_is_406(alice: User) -> None:
    answer = signed_in(alice).get("/v1/whoami", ACCEPT="image/png")
    assert (answer.status, answer.code) == (406, "not_acceptable")


def test_fields_are_named_with_their_path(db: None) -> None:
    body = check(raw("POST", LOGIN, b"{}", content_type="application/json"), 400, "invalid_request")
    assert {(row["field"], row["code"]) for row in body["errors"]} == {
        ("email", "required"),
        ("password", "required"),
    }


def test_a_crash_is_a_500_without_details(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object) -> None:
        raise RuntimeError("the secret plan")

    monkeypatch.setattr("accounts.views.effective", crash)
    answer = signed_in(alice).get("/v1/permissions/effective")
    assert (answer.status, answer.code) == (500, "internal_error")
    assert "secret plan" not in json.dumps(answer.body)


def test_a_lost_control_database_is_503(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: object, **__: object) -> None:
        raise OperationalError("server closed the connection to 10.0.0.7 unexpectedly")

    monkeypatch.setattr("accounts.middleware._resolve", lost)
    answer = signed_in(alice).get("/v1/whoami")
    assert (answer.status, answer.code) == (503, "database_unavailable")
    assert answer.headers["Retry-After"] == "2"
    assert "10.0.0.7" not in json.dumps(answer.body)


def test_a_refused_statement_is_not_an_unavailable_database() -> None:
    class Cause(Exception):
        sqlstate = "42601"

    error = OperationalError("syntax")
    error.__cause__ = Cause()
    assert problems.translate(error) is None


@pytest.mark.django_db(transaction=True)
def test_the_loser_of_a_deadlock_is_asked_to_try_again(
    alice: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two requests lock two users in opposite orders; PostgreSQL ends one of them."""
    both_hold_one = Barrier(2)

    def cross(request: Any) -> list[str]:
        mine, others = (alice, bob) if request.email == alice.email else (bob, alice)
        users = User.objects.select_for_update()
        with transaction.atomic():
            users.get(pk=mine.pk)
            both_hold_one.wait(timeout=10)
            users.get(pk=others.pk)
        return []

    monkeypatch.setattr(
        "accounts.views.CallerViewSet.effective_permissions",
        lambda self, request: Response(cross(request.user)),
    )
    callers = [signed_in(alice), signed_in(bob)]
    with conformance.unchecked():  # the view's own answer is not in the document
        answers = at_once(*[partial(one.get, "/v1/permissions/effective") for one in callers])
    refused = [answer for answer in answers if answer.status != 200]
    assert [(answer.status, answer.code) for answer in refused] == [(503, "contended")]
    assert refused[0].headers["Retry-After"] == "1"


def test_only_well_formed_request_ids_are_used(db: None) -> None:
    caller = Caller()
    assert caller.get("/healthz", X_REQUEST_ID="trace-0123").headers["X-Request-Id"] == "trace-0123"
    for evil in ["short", "a" * 65, "line\nbreak-here", "<script>alert", "with space"]:
        assert caller.get("/healthz", X_REQUEST_ID=evil).headers["X-Request-Id"] != evil
