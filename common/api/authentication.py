"""Authentication class of DRF that takes the principal from the middleware."""

from typing import cast

from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from common.principals import PlatformRequest, Principal


class PrincipalAuthentication(BaseAuthentication):
    """Returns the principal that the middleware has resolved."""

    def authenticate(self, request: Request) -> tuple[Principal, None] | None:
        """Return the principal, None for an anonymous caller, or raise the error of its token."""
        given = cast(PlatformRequest, request)
        if given.principal_error is not None:
            raise given.principal_error
        return (given.principal, None) if given.principal is not None else None

    def authenticate_header(self, request: Request) -> str:
        """Return the scheme, so that DRF answers 401 and not 403."""
        return "Bearer"
