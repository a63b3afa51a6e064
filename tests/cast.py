"""The users of every access test, and an API client for each of them.

Alice owns an organization, Bob is a member of it with a lesser role, Charlie owns another one.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpResponse
from django.test import Client
from django.test.client import ClientHandler
from django.utils import timezone

from accounts import passwords
from accounts.models import Session, User
from accounts.sessions import sessions
from accounts.signin import signup
from accounts.tokens import session_tokens
from environments import environments
from environments.models import Environment, Organization

# One for all callers: each loads the middleware, which reads every static file.
HANDLER = ClientHandler(enforce_csrf_checks=False)

PASSWORD = "correct horse battery staple"


@dataclass
class Answer:
    """A parsed response."""

    status: int
    body: Any
    headers: Any
    raw: HttpResponse

    @property
    def code(self) -> str:
        """The problem's code."""
        return str(self.body["code"])


@dataclass
class Caller:
    """A client of the API, with or without a token."""

    access_token: str = ""
    refresh_token: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        **headers: str,
    ) -> Answer:
        """Send JSON, or bytes of another type. Header names: HTTP_X_Y is spelled X_Y."""
        sent = {f"HTTP_{name}": value for name, value in (self.headers | headers).items()}
        if self.access_token:
            sent.setdefault("HTTP_AUTHORIZATION", f"Bearer {self.access_token}")
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body)
        client = Client(raise_request_exception=False)
        client.handler = HANDLER
        # Any: the stubs take headers for the parameters that come before them.
        send: Any = client.generic
        response = send(method, path, data, content_type=content_type, **sent)
        is_json = "json" in response.get("Content-Type", "")
        parsed = json.loads(response.content) if is_json and response.content else None
        return Answer(response.status_code, parsed, response.headers, response)

    def get(self, path: str, **headers: str) -> Answer:
        """GET."""
        return self.call("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        """POST."""
        return self.call("POST", path, {} if body is None else body, **headers)

    def refresh(self) -> Answer:
        """Refresh with this caller's token; the caller keeps the old pair."""
        return self.post("/v1/auth/refresh", {"refresh_token": self.refresh_token})

    def holding(self, answer: Answer) -> "Caller":
        """Return a caller with the tokens of a response."""
        assert answer.status in {200, 201}, answer.body
        return Caller(answer.body["access_token"], answer.body["refresh_token"], self.headers)


def organization(name: str = "Alice's") -> Organization:
    """Create an organization."""
    return environments.create_organization(name)


def member(
    of: Organization, email: str = "alice@example.com", *, role: str = "admin", password: str = ""
) -> User:
    """Create a user; without a password no hash is computed, which is faster."""
    encoded = passwords.hash_password(password) if password else "!"
    return signup.add_user(of, email, encoded, roles=[role])


def with_proven_address(user: User) -> User:
    """Verify a user's address: an admin without that and without a password does not count."""
    user.email_verified_at = timezone.now()
    user.save(update_fields=["email_verified_at"])
    return user


def session_of(user: User, environment: str = "live") -> Session:
    """Open a session without a login."""
    place = Environment.objects.get(organization_id=user.organization_id, slug=environment)
    return sessions.open_session(
        # As it is now: a test's fixture may be older than what the test has done.
        User.objects.get(pk=user.pk),
        place,
        assurance=sessions.Assurance(aal=1, amr=["pwd"]),
        source=sessions.RequestSource("127.0.0.1", "test"),
        now=timezone.now(),
    )


def signed_in(user: User, environment: str = "live") -> Caller:
    """Return a caller with a session of the user."""
    session = session_of(user, environment)
    pair = session_tokens.pair_for(session, session.environment)
    return Caller(pair.access_token, pair.refresh_token)
