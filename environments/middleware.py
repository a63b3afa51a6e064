"""Middleware for the scope of the request, derived from its principal."""

from collections.abc import Callable
from typing import cast

from django.http import HttpRequest, HttpResponse

from common.principals import PlatformRequest


class ScopeMiddleware:
    """Sets ``request.scope``; None for an anonymous caller."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, http_request: HttpRequest) -> HttpResponse:
        """Call the view with the scope set."""
        request = cast(PlatformRequest, http_request)
        request.scope = request.principal.scope if request.principal is not None else None
        return self.get_response(request)
