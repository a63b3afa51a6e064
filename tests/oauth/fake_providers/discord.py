"""A fake Discord, after its documentation.

Source: https://docs.discord.com/developers/topics/oauth2,
https://docs.discord.com/developers/resources/user
"""

import secrets
from dataclasses import dataclass, field
from typing import Any

from tests.oauth.fake_providers.server import (
    CLIENT_ID,
    Code,
    FakeResponse,
    ProviderServer,
    ReceivedRequest,
    Route,
)

API = "/api/v10/users/@me"
WEEK_S = 604800


@dataclass
class DiscordPerson:
    """A Discord account; guilds: the roles in each server it is in, by their ids."""

    id: str = "80351110224678912"
    username: str = "dora"
    global_name: str | None = "Dora Lake"
    email: str | None = "dora@example.com"
    verified: bool = True
    guilds: dict[str, list[str]] = field(default_factory=dict)
    pending: bool = False


class DiscordServer(ProviderServer):
    """Discord's endpoints. life_s: of access tokens; a refresh token works once."""

    def __init__(self) -> None:
        super().__init__()
        self.person = DiscordPerson()
        self.life_s = WEEK_S
        self.renewals: dict[str, Code] = {}
        self.is_revoked = False

    def routes(self) -> dict[str, Route]:
        """Return the paths."""
        return {
            "/oauth2/authorize": self.authorize,
            "/api/oauth2/token": self.token,
            API: self.user,
            f"{API}/guilds/*": self.member,
        }

    def token(self, request: ReceivedRequest) -> FakeResponse:
        """Exchange a code or a refresh token."""
        if request.form.get("grant_type") == "refresh_token":
            return self.renew(request)
        code = self.redeem(request)
        return code if isinstance(code, FakeResponse) else self.pair(code)

    def renew(self, request: ReceivedRequest) -> FakeResponse:
        """Exchange a refresh token, once; its access tokens end with it."""
        if request.form.get("client_id") != CLIENT_ID or not self.is_our_client(request.form):
            return self.token_error("invalid_client", 401)
        code = self.renewals.pop(request.form["refresh_token"], None)
        if code is None or self.is_revoked:
            return self.token_error("invalid_grant")
        self.tokens = {token: of for token, of in self.tokens.items() if of is not code}
        return self.pair(code)

    def pair(self, code: Code) -> FakeResponse:
        """Return the tokens."""
        refresh_token = secrets.token_urlsafe(24)
        self.renewals[refresh_token] = code
        return FakeResponse(
            body={
                "access_token": self.issue(code),
                "token_type": "Bearer",
                "expires_in": self.life_s,
                "refresh_token": refresh_token,
                "scope": code.scope,
            }
        )

    def user(self, request: ReceivedRequest) -> FakeResponse:
        """Return the user; without its scope there is no address."""
        person, scopes = self.known(request)
        if person is None or "identify" not in scopes:
            return FakeResponse(401, {"message": "401: Unauthorized", "code": 0})
        body: dict[str, Any] = {
            "id": person.id,
            "username": person.username,
            "discriminator": "0",
            "global_name": person.global_name,
        }
        if "email" in scopes:
            body |= {"email": person.email, "verified": person.verified}
        return FakeResponse(body=body)

    def member(self, request: ReceivedRequest) -> FakeResponse:
        """Return the user's membership of a server."""
        person, scopes = self.known(request)
        if person is None or "guilds.members.read" not in scopes:
            return FakeResponse(401, {"message": "401: Unauthorized", "code": 0})
        guild, tail = request.path.removeprefix(f"{API}/guilds/").split("/")
        assert tail == "member"
        if guild not in person.guilds:
            return FakeResponse(404, {"message": "Unknown Guild", "code": 10004})
        body = {"roles": person.guilds[guild], "pending": person.pending, "nick": None}
        return FakeResponse(body=body | {"user": {"id": person.id}})

    def known(self, request: ReceivedRequest) -> tuple[DiscordPerson | None, list[str]]:
        """Return the user and the scopes of a token."""
        code = self.bearer_of(request)
        if code is None or self.is_revoked:
            return None, []
        return code.person, code.scope.split(" ")
