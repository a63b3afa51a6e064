"""The cast with databases: callers of ``POST /v1/sql`` without the rest of the platform."""

import json
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.test import RequestFactory

from common.principals import Principal, Scope
from common.scoping import within
from environments import environments
from environments.middleware import ScopeMiddleware
from environments.models import Environment, Organization
from sqlgateway.api.sql import SqlViewSet
from sqlgateway.clusters import servers
from sqlgateway.models import Database
from tests import conformance

# The gateway reads this wrongly: an END that ends a body looks like the end of ``case``.
UNREADABLE = (
    "CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1 AS case; END"
)
VIEW = SqlViewSet.as_view({"post": "create"})


@dataclass
class Answer:
    """An answer, read."""

    status: int
    body: Any
    headers: Any

    @property
    def code(self) -> str:
        """The problem's code."""
        return str(self.body["code"])

    @property
    def rows(self) -> Any:
        """The rows of an answer that is none of a refusal."""
        assert self.status == 200, self.body
        return self.body["rows"]


@dataclass(frozen=True)
class Caller:
    """Somebody with a role in an environment."""

    scope: Scope
    role: str = "admin"
    user_id: UUID | None = None

    def be(self, role: str) -> "Caller":
        """Return somebody else in the same environment."""
        return Caller(self.scope, role)

    def post(self, body: dict[str, Any], **headers: str) -> Answer:
        """POST a body; header names: X-Y is spelled X_Y."""
        request: Any = RequestFactory().post(
            "/v1/sql", json.dumps(body), content_type="application/json", headers=headers
        )
        request.principal = replace(principal(self.scope, self.role), user_id=self.user_id)
        request.principal_error = None
        request.request_id = "request-of-a-test"
        response = ScopeMiddleware(VIEW)(request)
        if hasattr(response, "render"):
            response.render()
        answer = _read(response)
        conformance.check(
            conformance.Exchange(
                method="POST",
                path="/v1/sql",
                request_body=body,
                status=answer.status,
                media=response["Content-Type"],
                body=answer.body,
            )
        )
        return answer

    def sql(self, query: str, params: list[Any] | None = None, **options: Any) -> Answer:
        """Run a text."""
        body = {"query": query, **options}
        return self.post(body if params is None else {**body, "params": params})

    def value(self, query: str, params: list[Any] | None = None, **options: Any) -> Any:
        """Return the only value of the only row."""
        ((value,),) = self.sql(query, params, rows="arrays", **options).rows
        return value

    @property
    def database(self) -> Database:
        """The placement record."""
        # Also in a test's threads.
        with within(self.scope):
            found: Database = Database.objects.get()
        return found


def _read(response: HttpResponse) -> Answer:
    return Answer(response.status_code, json.loads(response.content), response.headers)


def principal(scope: Scope, *roles: str) -> Principal:
    """Return a signed-in caller."""
    return Principal(
        kind="user",
        user_id=None,
        email="alice@example.com",
        organization_id=scope.organization_id,
        organization_name="Alice's",
        environment_pk=scope.environment_pk,
        environment_id="live",
        environment_name="live",
        roles=roles,
        labels=(),
        session_id=None,
        aal=1,
        amr=("pwd",),
        auth_time=0,
        access_expires_at=None,
    )


def organization(name: str) -> Organization:
    """Make an organization with live and sandbox."""
    return environments.create_organization(name)


def caller(of: Organization, slug: str = "live", *, role: str = "admin") -> Caller:
    """Return somebody in one of its environments."""
    environment = Environment.objects.get(organization=of, slug=slug)
    return Caller(Scope(of.pk, environment.pk), role)


def as_provisioner(query: str, values: list[Any] | None = None) -> list[tuple[Any, ...]]:
    """Ask the tenants' cluster as its administrator."""
    address = servers.address_of(servers.default())
    with servers.administer(address) as connection:
        cursor = connection.execute(query.encode(), values)
        return cursor.fetchall() if cursor.description else []


def backends_of(someone: Caller) -> list[tuple[Any, ...]]:
    """Return (pid, state, query) of the running backends of somebody's database."""
    return as_provisioner(
        "SELECT pid, state, query FROM pg_stat_activity WHERE datname = %s AND state <> 'idle'",
        [someone.database.dbname],
    )
