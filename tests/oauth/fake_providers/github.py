"""A fake GitHub, after its documentation; it runs as an enterprise server.

Source: https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps,
https://docs.github.com/en/rest
"""

from dataclasses import dataclass, field
from typing import Any

from tests.oauth.fake_providers.server import FakeResponse, ProviderServer, ReceivedRequest, Route

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

    def token(self, request: ReceivedRequest) -> FakeResponse:
        """Exchange a code; GitHub refuses with status 200."""
        code = self.redeem(request)
        if isinstance(code, FakeResponse):
            code.body["error"] = code.body["error"].replace(
                "invalid_grant", "bad_verification_code"
            )
            return FakeResponse(200, code.body)
        scope = self.grants if self.grants is not None else code.scope.replace(" ", ",")
        code.scope = scope
        return FakeResponse(
            body={"access_token": self.issue(code), "scope": scope, "token_type": "bearer"}
        )

    def user(self, request: ReceivedRequest) -> FakeResponse:
        """Return the user with the public address, which is not verified."""
        person = self.known(request)
        if isinstance(person, FakeResponse):
            return person
        body = {"login": person.login, "id": person.id, "name": person.name, "type": "User"}
        return self.reply(request, body | {"email": "public@example.net"})

    def emails(self, request: ReceivedRequest) -> FakeResponse:
        """List the addresses."""
        person = self.known(request)
        if isinstance(person, FakeResponse):
            return person
        if "user:email" not in self.scopes(request):
            return self.reply(request, {"message": "Not Found"}, 404)
        return self.reply(request, person.emails)

    def organization(self, request: ReceivedRequest) -> FakeResponse:
        """Return whether the user is in an organization."""
        name = request.path.rpartition("/")[2].lower()
        return self.membership(request, name, lambda person: person.organizations.get(name))

    def team(self, request: ReceivedRequest) -> FakeResponse:
        """Return whether the user is in a team."""
        _, _, _, _, name, teams, team, memberships, login = request.path.lower().split("/")
        assert (teams, memberships) == ("teams", "memberships")
        key = f"{name}/{team}"
        return self.membership(
            request, name, lambda person: person.teams.get(key) if login == person.login else None
        )

    def membership(self, request: ReceivedRequest, organization: str, state: Any) -> FakeResponse:
        """Answer as GitHub does: 403 if it may not answer, 404 for no member."""
        person = self.known(request)
        if isinstance(person, FakeResponse):
            return person
        if organization in self.restricted:
            return self.reply(request, {"message": "OAuth App access restrictions"}, 403)
        found = state(person) if "read:org" in self.scopes(request) else None
        if found is None:
            return self.reply(request, {"message": "Not Found"}, 404)
        return self.reply(request, {"state": found, "role": "member"})

    def known(self, request: ReceivedRequest) -> GitHubPerson | FakeResponse:
        """Return the user of a token."""
        assert request.headers["x-github-api-version"] == "2022-11-28"
        code = self.bearer_of(request)
        if code is None or self.is_revoked:
            return FakeResponse(401, {"message": "Bad credentials"})
        # The current state of the user, not the state at the sign-in.
        person: GitHubPerson = code.person
        return person

    def scopes(self, request: ReceivedRequest) -> list[str]:
        """Return the scopes of a call's token."""
        code = self.bearer_of(request)
        return code.scope.split(",") if code is not None else []

    def reply(self, request: ReceivedRequest, body: Any, status: int = 200) -> FakeResponse:
        """Answer with the header that names the token's scopes."""
        return FakeResponse(status, body, {"X-OAuth-Scopes": ", ".join(self.scopes(request))})
