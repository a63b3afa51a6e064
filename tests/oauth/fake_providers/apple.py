"""A fake Apple, after its documentation.

Source: https://developer.apple.com/documentation/signinwithapplerestapi
"""

import json
import secrets
import time
from dataclasses import dataclass
from html import escape
from typing import Any

import jwt
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from tests.oauth.fake_providers import keys
from tests.oauth.fake_providers.server import (
    CLIENT_ID,
    FakeResponse,
    ProviderServer,
    ReceivedRequest,
    Route,
)

TEAM_ID = "TEAM123456"
KEY_ID = "KEY1234567"
HALF_A_YEAR_S = 15_777_000


@dataclass
class ApplePerson:
    """An Apple account; is_private: it hides its address behind a relay address."""

    sub: str = "001234.5b3a3bdf9c0b4f049c1471cae1cd1d8d.0001"
    email: str | None = "dora@example.com"
    email_verified: Any = "true"
    is_private: bool = False
    first_name: str = "Dora"
    last_name: str = "Lake"


class AppleServer(ProviderServer):
    """Apple's endpoints. seen: users who consented before; the name is not sent again."""

    def __init__(self) -> None:
        super().__init__()
        self.person = ApplePerson()
        self.claims: dict[str, Any] = {}
        self.client_secrets: list[dict[str, Any]] = []
        self.seen: set[str] = set()
        self.user: str | None = None

    def routes(self) -> dict[str, Route]:
        """Return the paths."""
        return {
            "/auth/authorize": self.authorize,
            "/auth/token": self.token,
            "/auth/keys": self.keys,
        }

    def authorize(self, request: ReceivedRequest) -> FakeResponse:
        """Require form_post for scopes, and refuse PKCE."""
        if request.query.get("scope") and request.query.get("response_mode") != "form_post":
            return FakeResponse(400, {"error": "invalid_request"})
        assert "code_challenge" not in request.query
        return super().authorize(request)

    def back(self, query: dict[str, str], values: dict[str, str]) -> FakeResponse:
        """Return a page that submits the form; the name is in it at the first sign-in only."""
        values = values | {"state": query["state"]}
        if "code" in values and self.person.sub not in self.seen:
            self.seen.add(self.person.sub)
            name = {"firstName": self.person.first_name, "lastName": self.person.last_name}
            values["user"] = json.dumps({"name": name, "email": "whatever@example.com"})
        if self.user is not None:
            values["user"] = self.user
        fields = "".join(
            f'<input type="hidden" name="{name}" value="{escape(value)}">'
            for name, value in values.items()
        )
        page = f'<form method="post" action="{escape(query["redirect_uri"])}">{fields}</form>'
        script = "<script>document.forms[0].submit()</script>"
        return FakeResponse(
            200, (page + script).encode(), {"Content-Type": "text/html; charset=utf-8"}
        )

    def is_our_client(self, form: dict[str, str]) -> bool:
        """Verify the client secret: ES256 by the team's key, for Apple, six months at most."""
        private = load_pem_private_key(keys.ec_pem("apple").encode(), password=None)
        public: Any = private.public_key()
        secret = form.get("client_secret", "")
        try:
            claims = jwt.decode(
                secret, public, algorithms=["ES256"], audience="https://appleid.apple.com"
            )
        except jwt.PyJWTError:
            return False
        self.client_secrets.append(claims)
        life_s: int = claims["exp"] - claims["iat"]
        response = (jwt.get_unverified_header(secret)["kid"], claims["iss"], claims["sub"])
        return response == (KEY_ID, TEAM_ID, CLIENT_ID) and life_s <= HALF_A_YEAR_S

    def token(self, request: ReceivedRequest) -> FakeResponse:
        """Exchange a code."""
        code = self.redeem(request)
        if isinstance(code, FakeResponse):
            return code
        access_token = self.issue(code)
        person: ApplePerson = code.person
        now = int(time.time())
        claims: dict[str, Any] = {
            "iss": self.url,
            "aud": CLIENT_ID,
            "sub": person.sub,
            "iat": now,
            "exp": now + 86400,
            "at_hash": keys.at_hash(access_token),
            "auth_time": now,
            "nonce_supported": True,
            "nonce": code.nonce or None,
            "email": person.email,
            "email_verified": person.email_verified,
            "is_private_email": "true" if person.is_private else None,
        }
        claims = claims | self.claims
        claims = {name: value for name, value in claims.items() if value is not None}
        return FakeResponse(
            body={
                "access_token": access_token,
                "token_type": "Bearer",
                "expires_in": 3600,
                "refresh_token": secrets.token_urlsafe(24),
                "id_token": keys.sign(claims, "apple-rsa"),
            }
        )

    def keys(self, request: ReceivedRequest) -> FakeResponse:
        """List the keys."""
        return FakeResponse(body={"keys": [keys.jwk("apple-old"), keys.jwk("apple-rsa")]})
