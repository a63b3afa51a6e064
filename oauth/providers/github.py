"""Sign in with GitHub: OAuth 2.0 and its REST API, organizations and teams.

Source: https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps,
https://docs.github.com/en/rest (users/emails, orgs/members, teams/members)
"""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, urlsplit

import requests
from django.http import HttpResponse
from social_core.backends.github import GithubOAuth2
from social_core.backends.oauth import BaseOAuth2PKCE

from oauth.errors import ProviderError
from oauth.providers import http
from oauth.providers.backend import CredentialsRefused, ProviderBackend
from oauth.providers.conf import ProviderSettings
from oauth.providers.profile import Memberships, Profile, ProviderTokens, email_or_blank, one_line

VERSION: Final = "2022-11-28"
# Each of them lets a token read its owner's organizations and teams.
ORGANIZATION_SCOPES: Final = frozenset({"read:org", "write:org", "admin:org"})


class GitHub(ProviderBackend, GithubOAuth2[HttpResponse], BaseOAuth2PKCE[HttpResponse]):
    """GitHub, or an enterprise server."""

    name = "github"
    SCOPE_SEPARATOR = " "

    @classmethod
    def social_settings(cls, provider: ProviderSettings) -> dict[str, Any]:
        """Return the endpoints; organizations are requested only if a mapping needs them."""
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

    def read_profile(self, tokens: dict[str, Any]) -> Profile:
        """Ask for the user and the primary address, with GitHub's statement on its verification."""
        credentials = self.credentials(tokens)
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
            email=email_or_blank(primary.get("email")),
            is_verified=primary.get("verified") is True,
            username=one_line(user.get("login"), max_chars=100),
            name=one_line(user.get("name"), max_chars=200),
            memberships=self._ask_groups(credentials, user) if self.provider.mappings else None,
            credentials=credentials if self.provider.mappings else None,
        )

    def memberships(
        self, credentials: ProviderTokens, subject: str, groups: Iterable[str]
    ) -> Memberships:
        """Ask in which organizations and teams the user is an active member.

        Raises CredentialsRefused, also for a token of another account than the subject's.
        """
        asked = list(groups)
        response = self._get("/user", credentials)
        if response is not None and response.status_code == HTTPStatus.UNAUTHORIZED:
            raise CredentialsRefused
        user = (
            _json(response)
            if response is not None and response.status_code == HTTPStatus.OK
            else {}
        )
        found = _subject(user)
        if not found:
            return Memberships(unknown=tuple(asked))
        if found != subject:
            raise CredentialsRefused
        return self._ask_groups(credentials, user, asked)

    def _ask_groups(
        self, credentials: ProviderTokens, user: dict[str, Any], groups: list[str] | None = None
    ) -> Memberships:
        login = str(user.get("login"))
        asked = self.groups() if groups is None else groups
        found = {group: self._is_member(credentials, login, group) for group in asked}
        return Memberships(
            held=tuple(group for group, is_in in found.items() if is_in),
            unknown=tuple(group for group, is_in in found.items() if is_in is None),
        )

    def _is_member(self, credentials: ProviderTokens, login: str, group: str) -> bool | None:
        """True for a member; None if GitHub's response is unclear.

        Each group takes a request of its own: lists silently omit organizations that restrict this
        application or require a recent single sign-on; a single request is answered with 403.
        """
        organization, _, team = group.partition("/")
        path = (
            f"/orgs/{quote(organization)}/teams/{quote(team)}/memberships/{quote(login, safe='')}"
            if team
            else f"/user/memberships/orgs/{quote(organization)}"
        )
        response = self._get(path, credentials)
        if response is None:
            return None
        if response.status_code == HTTPStatus.OK:
            state = _json(response).get("state")
            return state == "active" if state in {"active", "pending"} else None
        if response.status_code == HTTPStatus.NOT_FOUND and _can_read_organizations(response):
            return False
        return None

    def _get(self, path: str, credentials: ProviderTokens) -> requests.Response | None:
        try:
            return http.send("GET", f"{self._api}{path}", headers=self._headers(credentials))
        except requests.RequestException:
            return None

    def _headers(self, credentials: ProviderTokens) -> dict[str, str | bytes]:
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
        # Enterprise Cloud with data residency has a host for the API, a server has a path.
        is_cloud = (parts.hostname or "").endswith(".ghe.com")
        return f"{parts.scheme}://api.{parts.netloc}" if is_cloud else f"{base}/api/v3"


def _subject(user: object) -> str:
    """Return the numeric id: a login can be changed and then taken by another user."""
    key = user.get("id") if isinstance(user, dict) else None
    return str(key) if type(key) is int and key > 0 else ""


def _can_read_organizations(response: requests.Response) -> bool:
    """True if a 404 means that the user is not a member, and not that the token lacks a scope."""
    scopes = response.headers.get("X-OAuth-Scopes")
    if scopes is None:
        # GitHub Apps have permissions instead, without which the status is 403.
        return True
    return bool(ORGANIZATION_SCOPES & {scope.strip() for scope in scopes.split(",")})


def _json(response: requests.Response) -> dict[str, Any]:
    try:
        body = response.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
