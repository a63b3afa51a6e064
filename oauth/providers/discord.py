"""Sign in with Discord: OAuth 2.0 and its API, servers (guilds) and the roles in them.

Source: https://docs.discord.com/developers/topics/oauth2,
https://docs.discord.com/developers/resources/user (users/@me, users/@me/guilds/{id}/member)
"""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Final

import requests
from django.http import HttpResponse
from social_core.backends.discord import DiscordOAuth2
from social_core.backends.oauth import BaseOAuth2PKCE

from oauth.errors import ProviderError
from oauth.providers import http
from oauth.providers.backend import CredentialsRefused, ProviderBackend
from oauth.providers.conf import ProviderSettings
from oauth.providers.profile import Memberships, Profile, ProviderTokens, email_or_blank, one_line

API: Final = "/api/v10"


class Discord(ProviderBackend, DiscordOAuth2[HttpResponse], BaseOAuth2PKCE[HttpResponse]):
    """Discord, with servers (guilds)."""

    name = "discord"
    SCOPE_SEPARATOR = " "
    DEFAULT_SCOPE = ["identify", "email"]

    @classmethod
    def social_settings(cls, provider: ProviderSettings) -> dict[str, Any]:
        """Return the endpoints; servers are requested only if a mapping needs them."""
        base = provider.base_url or "https://discord.com"
        return {
            "KEY": provider.client_id,
            "SECRET": provider.client_secret,
            "AUTHORIZATION_URL": f"{base}/oauth2/authorize",
            "ACCESS_TOKEN_URL": f"{base}/api/oauth2/token",
            "SCOPE": ["guilds.members.read"] if provider.mappings else [],
            "USE_PKCE": True,
        }

    def read_profile(self, tokens: dict[str, Any]) -> Profile:
        """Ask for the user."""
        credentials = self.credentials(tokens)
        headers = self.bearer(credentials.access_token)
        user: Any = self.get_json(f"{self._api}/users/@me", headers=headers)
        subject = user.get("id") if isinstance(user, dict) else None
        if not isinstance(subject, str) or not subject.isdecimal():
            raise ProviderError
        wants_groups = bool(self.provider.mappings)
        return Profile(
            provider=self.name,
            subject=subject,
            email=email_or_blank(user.get("email")),
            is_verified=user.get("verified") is True,
            username=one_line(user.get("username"), max_chars=100),
            name=one_line(user.get("global_name"), max_chars=200),
            memberships=self._ask_groups(credentials, self.groups()) if wants_groups else None,
            credentials=credentials if wants_groups else None,
        )

    def memberships(
        self, credentials: ProviderTokens, subject: str, groups: Iterable[str]
    ) -> Memberships:
        """Ask in which servers the user is, and with which roles. Raises CredentialsRefused."""
        return self._ask_groups(credentials, list(groups))

    def _ask_groups(self, credentials: ProviderTokens, groups: list[str]) -> Memberships:
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

    def _roles(self, credentials: ProviderTokens, guild: str) -> frozenset[str] | None:
        """Return the user's roles in a server and the server's own id; empty for no member.

        None if Discord's response is unclear. Raises CredentialsRefused.
        """
        try:
            response = http.send(
                "GET",
                f"{self._api}/users/@me/guilds/{guild}/member",
                headers=self.bearer(credentials.access_token),
            )
            body = response.json() if response.status_code == HTTPStatus.OK else None
        except (requests.RequestException, ValueError):
            return None
        if response.status_code == HTTPStatus.UNAUTHORIZED:
            raise CredentialsRefused
        if response.status_code == HTTPStatus.NOT_FOUND:
            return frozenset()
        if not isinstance(body, dict) or not isinstance(body.get("roles"), list):
            return None
        # A user who has not accepted the server's rules yet has no rights there either.
        if body.get("pending") is True:
            return frozenset()
        return frozenset([guild, *(role for role in body["roles"] if isinstance(role, str))])

    @property
    def _api(self) -> str:
        return f"{self.provider.base_url or 'https://discord.com'}{API}"
