"""Django's middleware for pages, skipped for requests under ``/v1/``.

The API authenticates by bearer token (or by the console's own cookies, which are not a Django
session). A session cookie of the admin must give no access there, so it is not read.
"""

from typing import Any, Final

from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest

API: Final = "/v1/"


class PagesOnly:
    """Mixin before a middleware class: requests to the API skip the middleware."""

    get_response: Any

    def __call__(self, request: HttpRequest) -> Any:
        """Run the middleware, or skip it for the API."""
        if request.path_info.startswith(API):
            return self.get_response(request)
        return super().__call__(request)  # type: ignore[misc]  # the class beside this one


class PagesSessions(PagesOnly, SessionMiddleware):
    """``request.session`` for pages."""


class PagesUsers(PagesOnly, AuthenticationMiddleware):
    """``request.user`` for pages."""


class PagesMessages(PagesOnly, MessageMiddleware):
    """``messages`` for pages."""
