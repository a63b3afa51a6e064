"""DRF's side of authentication: it takes the principal from the middleware."""

from typing import cast

from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from platform_site.lib.principals import PlatformRequest, Principal


class PrincipalAuthentication(BaseAuthentication):
    """Return the principal that the middleware resolved; DRF itself authenticates nothing."""

    def authenticate(self, request: Request) -> tuple[Principal, None] | None:
        """Return the principal, None for an anonymous caller, or raise why its token is refused."""
        given = cast(PlatformRequest, request)
        if given.principal_error is not None:
            raise given.principal_error
        return (given.principal, None) if given.principal is not None else None

    def authenticate_header(self, request: Request) -> str:
        """Name the scheme, so that DRF answers 401 and not 403."""
        return "Bearer"
