"""Who makes a request, and where it acts: values without a model behind them."""

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from django.http import HttpRequest

from platform_site.lib.errors import PlatformError


@dataclass(frozen=True, slots=True)
class Scope:
    """One environment of one organization: the only place a request may touch."""

    organization_id: int
    environment_pk: int


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller, read in the request's one query.

    kind: ``user`` (a session), or ``dev`` (a development token: a synthetic admin without a user).
    environment_id: the immutable slug, as ``live``; environment_pk: its row.
    aal: authenticator assurance level, 1 or 2 (NIST SP 800-63B-4). amr: RFC 8176 method names.
    auth_time, access_expires_at: Unix seconds; both None for a development token.
    """

    kind: Literal["user", "dev"]
    user_id: UUID | None
    email: str | None
    organization_id: int
    organization_name: str
    environment_pk: int
    environment_id: str
    environment_name: str
    roles: tuple[str, ...]
    labels: tuple[str, ...]
    session_id: UUID | None
    aal: int
    amr: tuple[str, ...]
    auth_time: int | None
    access_expires_at: int | None

    is_authenticated = True

    @property
    def scope(self) -> Scope:
        """Where this principal acts."""
        return Scope(self.organization_id, self.environment_pk)


class PlatformRequest(HttpRequest):
    """What the middleware has put on the request by the time a view runs.

    principal: None for an anonymous caller; then principal_error says why credentials that were
    sent did not hold, and is raised by the views that need a principal.
    """

    request_id: str
    principal: Principal | None
    principal_error: PlatformError | None
    scope: Scope | None
