"""A fake Google, after its documentation.

Source: https://developers.google.com/identity/openid-connect/openid-connect
"""

import time
from dataclasses import dataclass
from typing import Any

from tests.oauth.fake_providers import keys
from tests.oauth.fake_providers.server import (
    CLIENT_ID,
    FakeResponse,
    ProviderServer,
    ReceivedRequest,
    Route,
)


@dataclass
class GooglePerson:
    """A Google account; hd: of a Workspace domain."""

    sub: str = "110169484474386276334"
    email: str = "dora@example.com"
    email_verified: bool = True
    name: str = "Dora Lake"
    hd: str = ""


class GoogleServer(ProviderServer):
    """Google's endpoints. claims: replace those of ID tokens, None leaves one out."""

    def __init__(self) -> None:
        super().__init__()
        self.person = GooglePerson()
        self.claims: dict[str, Any] = {}
        self.listed = ["google-1"]
        self.signs_with = "google-1"
        self.kid = ""

    def routes(self) -> dict[str, Route]:
        """Return the paths."""
        return {
            "/o/oauth2/v2/auth": self.authorize,
            "/token": self.token,
            "/oauth2/v3/certs": self.certs,
        }

    def rotate(self, name: str) -> None:
        """Sign with another key from now on, and list only this one."""
        self.listed, self.signs_with = [name], name

    def certs(self, request: ReceivedRequest) -> FakeResponse:
        """List the keys."""
        return FakeResponse(body={"keys": [keys.jwk(name) for name in self.listed]})

    def token(self, request: ReceivedRequest) -> FakeResponse:
        """Exchange a code."""
        code = self.redeem(request)
        if isinstance(code, FakeResponse):
            return code
        access_token = self.issue(code)
        person: GooglePerson = code.person
        now = int(time.time())
        claims: dict[str, Any] = {
            "iss": self.url,
            "azp": CLIENT_ID,
            "aud": CLIENT_ID,
            "sub": person.sub,
            "email": person.email,
            "email_verified": person.email_verified,
            "name": person.name,
            "at_hash": keys.at_hash(access_token),
            "nonce": code.nonce,
            "iat": now,
            "exp": now + 3600,
        }
        claims |= {"hd": person.hd} if person.hd else {}
        claims |= self.claims
        claims = {name: value for name, value in claims.items() if value is not None}
        return FakeResponse(
            body={
                "access_token": access_token,
                "expires_in": 3599,
                "scope": code.scope,
                "token_type": "Bearer",
                "id_token": keys.sign(claims, self.signs_with, kid=self.kid),
            }
        )
