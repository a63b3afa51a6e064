"""The parts of Django's middleware for pages that the API skips, and those it keeps."""

from typing import Any

import pytest
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from accounts.models import User
from tests.cast import Caller, signed_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff_cookie(alice: User) -> str:
    """Return the Cookie header of a member of staff who is signed in to the admin."""
    User.objects.filter(pk=alice.pk).update(is_staff=True)
    alice.refresh_from_db()
    session = SessionStore()
    session[SESSION_KEY] = str(alice.pk)
    session[BACKEND_SESSION_KEY] = "accounts.backends.StaffBackend"
    session[HASH_SESSION_KEY] = alice.get_session_auth_hash()
    session.save()
    return f"sessionid={session.session_key}"


def test_an_admin_session_gives_no_access_to_the_api(
    staff_cookie: str, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(0):
        answer = Caller().get("/v1/whoami", COOKIE=staff_cookie)
    assert (answer.status, answer.code) == (401, "not_authenticated")
    assert Caller().post("/v1/sql", {"query": "SELECT 1"}, COOKIE=staff_cookie).status == 401


def test_the_api_does_not_vary_by_cookie_and_sets_none(alice: User) -> None:
    answer = signed_in(alice).get("/v1/whoami")
    assert "Cookie" not in answer.headers.get("Vary", "")
    assert not answer.raw.cookies


def test_the_api_keeps_the_headers_that_protect_a_browser(alice: User) -> None:
    for answer in (signed_in(alice).get("/v1/whoami"), Caller().get("/v1/whoami")):
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["X-Frame-Options"] == "DENY"
        assert answer.headers["Referrer-Policy"] == "same-origin"
        assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"


def test_pages_have_their_session_and_their_user(staff_cookie: str) -> None:
    answer = Caller().get("/admin/", COOKIE=staff_cookie)
    # The second factor is what is still asked for: who it is has been read.
    assert answer.status == 302
    request: Any = answer.raw.wsgi_request  # type: ignore[attr-defined]  # the test client's own
    assert request.session.session_key in staff_cookie
    assert request.user.email == "alice@example.com"


def test_pages_require_the_csrf_token() -> None:
    client = Client(enforce_csrf_checks=True)
    answer = client.post("/admin/login/", {"username": "alice@example.com", "password": "x"})
    assert answer.status_code == 403


@pytest.mark.parametrize("path", ["/v1/../admin/", "/v1/..%2fadmin/", "/v1//admin/"])
def test_a_path_that_resembles_the_api_never_reaches_a_page(path: str) -> None:
    assert Caller().get(path).status == 404
