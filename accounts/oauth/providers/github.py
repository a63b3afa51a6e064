"""Sign in with GitHub: OAuth 2.0 and its REST API, organizations and teams.

Source: https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps,
https://docs.github.com/en/rest (users/emails, orgs/members, teams/members)
"""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, urlsplit

import requests
from social_core.backends.github import GithubOAuth2
from social_core.backends.oauth import BaseOAuth2PKCE

from accounts.oauth.errors import ProviderError
from accounts.oauth.providers import http
from accounts.oauth.providers.backend import Client, CredentialsRefused
from accounts.oauth.providers.profile import Credentials, Memberships, Profile, address, one_line
from platform_site.lib.provider_settings import ProviderSettings

VERSION: Final = "2022-11-28"
# Each of them lets a token see its owner's organizations and teams.
SCOPES_THAT_SEE: Final = frozenset({"read:org", "write:org", "admin:org"})


class GitHub(Client, GithubOAuth2[str], BaseOAuth2PKCE[str]):
    """GitHub's accounts, and those of an enterprise server."""

    name = "github"
    SCOPE_SEPARATOR = " "

    @classmethod
    def options(cls, provider: ProviderSettings) -> dict[str, Any]:
        """Give the endpoints; organizations are asked for only where a mapping needs them."""
        base = provider.base_url or "https://github.com"
        scope = ["user:email"] + (["read:org"] if provider.mappings else [])
        return {
            "KEY": provider.client_id,
            "SECRET": provider.client_secret,
            "AUTHORIZATION_URL": f"{base}/login/oauth/authorize",
            "ACCESS_TOKEN_URL": f"{base}/login/oauth/access_token",
            "SCOPE": scope,
            "USE_PKCE": True,
        }

    def profile(self, answer: dict[str, Any]) -> Profile:
        """Ask who it is; the address is the primary one, and as verified as GitHub says it is."""
        credentials = self.credentials(answer)
        headers = self._headers(credentials)
        user = self.get_json(f"{self._api}/user", headers=headers)
        emails: Any = self.get_json(
            f"{self._api}/user/emails", headers=headers, params={"per_page": 100}
        )
        subject = _subject(user)
        if not subject or not isinstance(emails, list):
            raise ProviderError
        rows = [row for row in emails if isinstance(row, dict)]
        primary = next((row for row in rows if row.get("primary") is True), {})
        return Profile(
            provider=self.name,
            subject=subject,
            email=address(primary.get("email")),
            is_verified=primary.get("verified") is True,
            username=one_line(user.get("login"), limit=100),
            name=one_line(user.get("name"), limit=200),
            memberships=self._ask(credentials, user) if self.provider.mappings else None,
            credentials=credentials if self.provider.mappings else None,
        )

    def memberships(
        self, credentials: Credentials, subject: str, groups: Iterable[str]
    ) -> Memberships:
        """Ask which organizations and teams somebody is an active member of.

        Raises CredentialsRefused, also for a token of another account than the subject's.
        """
        asked = list(groups)
        answer = self._get("/user", credentials)
        if answer is not None and answer.status_code == HTTPStatus.UNAUTHORIZED:
            raise CredentialsRefused
        user = _json(answer) if answer is not None and answer.status_code == HTTPStatus.OK else {}
        found = _subject(user)
        if not found:
            return Memberships(unknown=tuple(asked))
        if found != subject:
            raise CredentialsRefused
        return self._ask(credentials, user, asked)

    def _ask(
        self, credentials: Credentials, user: dict[str, Any], groups: list[str] | None = None
    ) -> Memberships:
        login = str(user.get("login"))
        asked = self.groups() if groups is None else groups
        found = {group: self._is_member(credentials, login, group) for group in asked}
        return Memberships(
            held=tuple(group for group, is_in in found.items() if is_in),
            unknown=tuple(group for group, is_in in found.items() if is_in is None),
        )

    def _is_member(self, credentials: Credentials, login: str, group: str) -> bool | None:
        """Say whether somebody is in; None where GitHub does not say.

        Each group is asked for by itself: lists leave out organizations that restrict this
        application or want a fresh single sign-on, as if nobody were in them; here they answer 403.
        """
        organization, _, team = group.partition("/")
        path = (
            f"/orgs/{quote(organization)}/teams/{quote(team)}/memberships/{quote(login, safe='')}"
            if team
            else f"/user/memberships/orgs/{quote(organization)}"
        )
        answer = self._get(path, credentials)
        if answer is None:
            return None
        if answer.status_code == HTTPStatus.OK:
            state = _json(answer).get("state")
            return state == "active" if state in {"active", "pending"} else None
        if answer.status_code == HTTPStatus.NOT_FOUND and _sees_organizations(answer):
            return False
        return None

    def _get(self, path: str, credentials: Credentials) -> requests.Response | None:
        try:
            return http.send("GET", f"{self._api}{path}", headers=self._headers(credentials))
        except requests.RequestException:
            return None

    def _headers(self, credentials: Credentials) -> dict[str, str | bytes]:
        return self.bearer(credentials.access_token) | {
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": VERSION,
        }

    @property
    def _api(self) -> str:
        base = self.provider.base_url
        if not base:
            return "https://api.github.com"
        parts = urlsplit(base)
        # Enterprise Cloud with data residency; an enterprise server has it below a path.
        is_cloud = (parts.hostname or "").endswith(".ghe.com")
        return f"{parts.scheme}://api.{parts.netloc}" if is_cloud else f"{base}/api/v3"


def _subject(user: object) -> str:
    """Give the numeric id: a login can be changed, and then be somebody else's."""
    key = user.get("id") if isinstance(user, dict) else None
    return str(key) if type(key) is int and key > 0 else ""


def _sees_organizations(answer: requests.Response) -> bool:
    """Say whether a 404 means that somebody is no member, and not that the token is too weak."""
    scopes = answer.headers.get("X-OAuth-Scopes")
    if scopes is None:
        # GitHub Apps have permissions instead, without which the answer is 403.
        return True
    return bool(SCOPES_THAT_SEE & {scope.strip() for scope in scopes.split(",")})


def _json(answer: requests.Response) -> dict[str, Any]:
    try:
        body = answer.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
