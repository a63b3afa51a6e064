"""Sign in with Discord: OAuth 2.0 and its API, servers (guilds) and the roles in them.

Source: https://docs.discord.com/developers/topics/oauth2,
https://docs.discord.com/developers/resources/user (users/@me, users/@me/guilds/{id}/member)
"""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Final

import requests
from social_core.backends.discord import DiscordOAuth2
from social_core.backends.oauth import BaseOAuth2PKCE

from accounts.oauth.errors import ProviderError
from accounts.oauth.providers import http
from accounts.oauth.providers.backend import Client, CredentialsRefused
from accounts.oauth.providers.profile import Credentials, Memberships, Profile, address, one_line
from platform_site.lib.provider_settings import ProviderSettings

API: Final = "/api/v10"


class Discord(Client, DiscordOAuth2[str], BaseOAuth2PKCE[str]):
    """Discord's accounts."""

    name = "discord"
    SCOPE_SEPARATOR = " "
    DEFAULT_SCOPE = ["identify", "email"]

    @classmethod
    def options(cls, provider: ProviderSettings) -> dict[str, Any]:
        """Give the endpoints; servers are asked for only where a mapping needs them."""
        base = provider.base_url or "https://discord.com"
        return {
            "KEY": provider.client_id,
            "SECRET": provider.client_secret,
            "AUTHORIZATION_URL": f"{base}/oauth2/authorize",
            "ACCESS_TOKEN_URL": f"{base}/api/oauth2/token",
            "SCOPE": ["guilds.members.read"] if provider.mappings else [],
            "USE_PKCE": True,
        }

    def profile(self, answer: dict[str, Any]) -> Profile:
        """Ask who it is."""
        credentials = self.credentials(answer)
        headers = self.bearer(credentials.access_token)
        user: Any = self.get_json(f"{self._api}/users/@me", headers=headers)
        subject = user.get("id") if isinstance(user, dict) else None
        if not isinstance(subject, str) or not subject.isdecimal():
            raise ProviderError
        wants_groups = bool(self.provider.mappings)
        return Profile(
            provider=self.name,
            subject=subject,
            email=address(user.get("email")),
            is_verified=user.get("verified") is True,
            username=one_line(user.get("username"), limit=100),
            name=one_line(user.get("global_name"), limit=200),
            memberships=self._ask(credentials, self.groups()) if wants_groups else None,
            credentials=credentials if wants_groups else None,
        )

    def memberships(
        self, credentials: Credentials, subject: str, groups: Iterable[str]
    ) -> Memberships:
        """Ask which servers somebody is in, and with which roles.

        Raises CredentialsRefused.
        """
        return self._ask(credentials, list(groups))

    def _ask(self, credentials: Credentials, groups: list[str]) -> Memberships:
        guilds = dict.fromkeys(group.partition("/")[0] for group in groups)
        found = {guild: self._roles(credentials, guild) for guild in guilds}
        held, unknown = [], []
        for group in groups:
            guild, _, role = group.partition("/")
            roles = found[guild]
            if roles is None:
                unknown.append(group)
            elif roles and (not role or role in roles):
                held.append(group)
        return Memberships(tuple(held), tuple(unknown))

    def _roles(self, credentials: Credentials, guild: str) -> frozenset[str] | None:
        """Give somebody's roles in a server with its own id among them; none for no member.

        None where Discord does not say. Raises CredentialsRefused.
        """
        try:
            answer = http.send(
                "GET",
                f"{self._api}/users/@me/guilds/{guild}/member",
                headers=self.bearer(credentials.access_token),
            )
            body = answer.json() if answer.status_code == HTTPStatus.OK else None
        except (requests.RequestException, ValueError):
            return None
        if answer.status_code == HTTPStatus.UNAUTHORIZED:
            raise CredentialsRefused
        if answer.status_code == HTTPStatus.NOT_FOUND:
            return frozenset()
        if not isinstance(body, dict) or not isinstance(body.get("roles"), list):
            return None
        # Who has not agreed to the server's rules yet may do nothing there either.
        if body.get("pending") is True:
            return frozenset()
        return frozenset([guild, *(role for role in body["roles"] if isinstance(role, str))])

    @property
    def _api(self) -> str:
        return f"{self.provider.base_url or 'https://discord.com'}{API}"
