"""Authentication middleware: sets the principal of the request before any view."""

from collections.abc import Callable
from typing import Final, cast

import structlog
from django.db import Error as DatabaseError
from django.db import connection
from django.http import HttpRequest, HttpResponse

from accounts.api_keys import authentication as api_keys
from accounts.sessions import authentication as sessions
from accounts.tokens import development
from common import problems
from common.errors import PlatformError, TokenInvalid
from common.middleware import API_PREFIX
from common.principals import PlatformRequest, Principal
from common.scoping import unscoped
from common.web import client_presence

Authenticator = Callable[[PlatformRequest, str], Principal | None]

# Other apps append theirs in ``AppConfig.ready()``. Each returns None for a token of another kind.
FURTHER_AUTHENTICATORS: Final[list[Authenticator]] = []


class PrincipalMiddleware:
    """Resolve the bearer token; the views decide whether they need a principal.

    The error of invalid credentials is stored as ``request.principal_error``, which views that need
    a principal raise: a login must not fail because of an old header. Pages and health checks use
    no bearer token.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, http_request: HttpRequest) -> HttpResponse:
        """Call the view with the principal set; answer 503 without a control database."""
        request = cast(PlatformRequest, http_request)
        request.principal, request.principal_error = None, None
        if not request.path_info.startswith(API_PREFIX):
            # Health and metrics must answer without a database, even if a proxy adds a header.
            return self.get_response(request)
        try:
            request.principal = _resolve(request)
        except PlatformError as exc:
            request.principal_error = exc
        except DatabaseError as exc:
            error = problems.translate(exc)
            if error is None:
                raise
            return problems.respond(request, error)
        if request.principal is not None:
            client_presence.set_organization(request.principal.organization_id)
            structlog.contextvars.bind_contextvars(
                organization_id=request.principal.organization_id,
                environment=request.principal.environment_id,
            )
        return self.get_response(request)


@unscoped("the token determines the tenant")
def _resolve(request: PlatformRequest) -> Principal | None:
    token = sessions.bearer_token(request)
    if token is None:
        return None
    try:
        return _ask(request, token)
    except DatabaseError as exc:
        if not problems.is_database_unreachable(exc) or connection.in_atomic_block:
            raise
        # If the connection was lost since its last request (the database was restarted), try again
        # on a new one: nothing was written yet.
        connection.close()
        return _ask(request, token)


def _ask(request: PlatformRequest, token: str) -> Principal:
    for authenticate in (
        api_keys.authenticate,
        development.authenticate,
        *FURTHER_AUTHENTICATORS,
        sessions.authenticate,
    ):
        principal = authenticate(request, token)
        if principal is not None:
            return principal
    raise TokenInvalid
