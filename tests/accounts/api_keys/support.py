"""API keys for tests."""

from typing import Any, cast

from django.test import RequestFactory

from accounts import middleware
from accounts.models import User
from common.principals import PlatformRequest, Principal
from tests.cast import Answer, Caller, signed_in

PATH = "/v1/api-keys"


def asked(user: User, environment: str = "live", **wanted: Any) -> Answer:
    """Ask for a key as a user; return the answer."""
    body = {"name": "nightly import", "role": "admin"} | wanted
    return signed_in(user, environment).post(PATH, body)


def made(user: User, environment: str = "live", **wanted: Any) -> dict[str, Any]:
    """Return the answer's body of a new key."""
    answer = asked(user, environment, **wanted)
    assert answer.status == 201, answer.body
    body: dict[str, Any] = answer.body
    return body


def holder(user: User, environment: str = "live", **wanted: Any) -> Caller:
    """Return a caller that sends a new key."""
    return Caller(made(user, environment, **wanted)["key"])


def principal_of(token: str) -> Principal:
    """Return who sends a token."""
    request = cast(PlatformRequest, RequestFactory().get("/"))
    return middleware._ask(request, token)
