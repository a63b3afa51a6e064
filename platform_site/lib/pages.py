"""Django's middleware for pages, left out where there are none: it counts nothing under ``/v1/``.

A caller of the API is who its bearer token says (or the console's own cookies, which are no
Django session): a session cookie of the admin must open nothing there, and is not even read.
"""

from typing import Any, Final

from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest

API: Final = "/v1/"


class PagesOnly:
    """Put before a middleware class: requests of the API pass it by."""

    get_response: Any

    def __call__(self, request: HttpRequest) -> Any:
        """Do as the middleware does, or hand on."""
        if request.path_info.startswith(API):
            return self.get_response(request)
        return super().__call__(request)  # type: ignore[misc]  # the class beside this one


class PagesSessions(PagesOnly, SessionMiddleware):
    """``request.session`` of pages."""


class PagesUsers(PagesOnly, AuthenticationMiddleware):
    """``request.user`` of pages."""


class PagesMessages(PagesOnly, MessageMiddleware):
    """``messages`` of pages."""
