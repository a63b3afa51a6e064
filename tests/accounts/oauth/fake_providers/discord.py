"""Discord, as it describes itself.

Source: https://docs.discord.com/developers/topics/oauth2,
https://docs.discord.com/developers/resources/user
"""

import secrets
from dataclasses import dataclass, field
from typing import Any

from tests.accounts.oauth.fake_providers.server import (
    CLIENT_ID,
    Asked,
    Code,
    ProviderServer,
    Route,
    Said,
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
    """Discord's endpoints. life_s: of access tokens; a refresh token is good for one renewal."""

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

    def token(self, asked: Asked) -> Said:
        """Exchange a code or a refresh token."""
        if asked.form.get("grant_type") == "refresh_token":
            return self.renew(asked)
        code = self.redeem(asked)
        return code if isinstance(code, Said) else self.pair(code)

    def renew(self, asked: Asked) -> Said:
        """Exchange a refresh token, once; its access tokens end with it."""
        if asked.form.get("client_id") != CLIENT_ID or not self.is_our_client(asked.form):
            return self.token_error("invalid_client", 401)
        code = self.renewals.pop(asked.form["refresh_token"], None)
        if code is None or self.is_revoked:
            return self.token_error("invalid_grant")
        self.tokens = {token: of for token, of in self.tokens.items() if of is not code}
        return self.pair(code)

    def pair(self, code: Code) -> Said:
        """Return the tokens."""
        refresh_token = secrets.token_urlsafe(24)
        self.renewals[refresh_token] = code
        return Said(
            body={
                "access_token": self.issue(code),
                "token_type": "Bearer",
                "expires_in": self.life_s,
                "refresh_token": refresh_token,
                "scope": code.scope,
            }
        )

    def user(self, asked: Asked) -> Said:
        """Say who it is; without its scope there is no address."""
        person, scopes = self.known(asked)
        if person is None or "identify" not in scopes:
            return Said(401, {"message": "401: Unauthorized", "code": 0})
        body: dict[str, Any] = {
            "id": person.id,
            "username": person.username,
            "discriminator": "0",
            "global_name": person.global_name,
        }
        if "email" in scopes:
            body |= {"email": person.email, "verified": person.verified}
        return Said(body=body)

    def member(self, asked: Asked) -> Said:
        """Say how the person is a member of a server."""
        person, scopes = self.known(asked)
        if person is None or "guilds.members.read" not in scopes:
            return Said(401, {"message": "401: Unauthorized", "code": 0})
        guild, tail = asked.path.removeprefix(f"{API}/guilds/").split("/")
        assert tail == "member"
        if guild not in person.guilds:
            return Said(404, {"message": "Unknown Guild", "code": 10004})
        body = {"roles": person.guilds[guild], "pending": person.pending, "nick": None}
        return Said(body=body | {"user": {"id": person.id}})

    def known(self, asked: Asked) -> tuple[DiscordPerson | None, list[str]]:
        """Return whose token it is, and what it may ask."""
        code = self.bearer_of(asked)
        if code is None or self.is_revoked:
            return None, []
        return code.person, code.scope.split(" ")
