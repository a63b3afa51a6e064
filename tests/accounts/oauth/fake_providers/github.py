"""GitHub, as it describes itself; under its own address, so as an enterprise server.

Source: https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps,
https://docs.github.com/en/rest
"""

from dataclasses import dataclass, field
from typing import Any

from tests.accounts.oauth.fake_providers.server import Asked, ProviderServer, Route, Said

API = "/api/v3"


@dataclass
class GitHubPerson:
    """A GitHub account; organizations, teams: the state of its membership, by name."""

    id: int = 583231
    login: str = "dora"
    name: str | None = "Dora Lake"
    emails: list[dict[str, Any]] = field(
        default_factory=lambda: [
            {"email": "old@example.com", "primary": False, "verified": True, "visibility": None},
            {"email": "dora@example.com", "primary": True, "verified": True, "visibility": None},
        ]
    )
    organizations: dict[str, str] = field(default_factory=dict)
    teams: dict[str, str] = field(default_factory=dict)


class GitHubServer(ProviderServer):
    """GitHub's endpoints.

    restricted: organizations that this application has no access to. revoked: tokens that the
    person has withdrawn. grants: the scopes that tokens get, instead of those asked for.
    """

    def __init__(self) -> None:
        super().__init__()
        self.person = GitHubPerson()
        self.restricted: set[str] = set()
        self.is_revoked = False
        self.grants: str | None = None

    def routes(self) -> dict[str, Route]:
        """Return the paths."""
        return {
            "/login/oauth/authorize": self.authorize,
            "/login/oauth/access_token": self.token,
            f"{API}/user": self.user,
            f"{API}/user/emails": self.emails,
            f"{API}/user/memberships/orgs/*": self.organization,
            f"{API}/orgs/*": self.team,
        }

    def token(self, asked: Asked) -> Said:
        """Exchange a code; GitHub refuses with 200."""
        code = self.redeem(asked)
        if isinstance(code, Said):
            code.body["error"] = code.body["error"].replace(
                "invalid_grant", "bad_verification_code"
            )
            return Said(200, code.body)
        scope = self.grants if self.grants is not None else code.scope.replace(" ", ",")
        code.scope = scope
        return Said(body={"access_token": self.issue(code), "scope": scope, "token_type": "bearer"})

    def user(self, asked: Asked) -> Said:
        """Say who it is; the address here is the public one, whoever's that is."""
        person = self.known(asked)
        if isinstance(person, Said):
            return person
        body = {"login": person.login, "id": person.id, "name": person.name, "type": "User"}
        return self.said(asked, body | {"email": "public@example.net"})

    def emails(self, asked: Asked) -> Said:
        """List the addresses."""
        person = self.known(asked)
        if isinstance(person, Said):
            return person
        if "user:email" not in self.scopes(asked):
            return self.said(asked, {"message": "Not Found"}, 404)
        return self.said(asked, person.emails)

    def organization(self, asked: Asked) -> Said:
        """Return whether the person is in an organization."""
        name = asked.path.rpartition("/")[2].lower()
        return self.membership(asked, name, lambda person: person.organizations.get(name))

    def team(self, asked: Asked) -> Said:
        """Return whether the person is in a team."""
        _, _, _, _, name, teams, team, memberships, login = asked.path.lower().split("/")
        assert (teams, memberships) == ("teams", "memberships")
        key = f"{name}/{team}"
        return self.membership(
            asked, name, lambda person: person.teams.get(key) if login == person.login else None
        )

    def membership(self, asked: Asked, organization: str, state: Any) -> Said:
        """Answer as GitHub does: 403 where it may not say, 404 for no member."""
        person = self.known(asked)
        if isinstance(person, Said):
            return person
        if organization in self.restricted:
            return self.said(asked, {"message": "OAuth App access restrictions"}, 403)
        found = state(person) if "read:org" in self.scopes(asked) else None
        if found is None:
            return self.said(asked, {"message": "Not Found"}, 404)
        return self.said(asked, {"state": found, "role": "member"})

    def known(self, asked: Asked) -> GitHubPerson | Said:
        """Return whose token it is."""
        assert asked.headers["x-github-api-version"] == "2022-11-28"
        code = self.bearer_of(asked)
        if code is None or self.is_revoked:
            return Said(401, {"message": "Bad credentials"})
        # As the person is now, and not as it was at the sign-in.
        person: GitHubPerson = code.person
        return person

    def scopes(self, asked: Asked) -> list[str]:
        """Return the scopes of a call's token."""
        code = self.bearer_of(asked)
        return code.scope.split(",") if code is not None else []

    def said(self, asked: Asked, body: Any, status: int = 200) -> Said:
        """Answer with the header that names the token's scopes."""
        return Said(status, body, {"X-OAuth-Scopes": ", ".join(self.scopes(asked))})
