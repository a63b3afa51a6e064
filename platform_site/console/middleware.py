"""The console's way into the public API: cookies in, cookies out, and nobody else's pages."""

from collections.abc import Callable
from typing import Final

from django.http import HttpRequest, HttpResponse

from platform_site.console import tokens
from platform_site.console.errors import CsrfFailed
from platform_site.console.origin import is_same_origin
from platform_site.lib import problems

# X-Zonal-Console, as WSGI spells it.
HEADER: Final = "HTTP_X_ZONAL_CONSOLE"
API: Final = "/v1/"
# Any other path may come to give tokens out; results of SQL are long, and hold whatever people
# call their columns.
GIVES_NO_TOKENS: Final = "/v1/sql"


class ConsoleMiddleware:
    """Let the console's pages call the API with tokens that no script ever sees.

    A console request says ``X-Zonal-Console: 1``, which no form and no other site's script can
    send (it takes a preflight, and nothing here answers one), and must be same-origin beside.
    Everybody else sees no change: cookies alone are never a principal.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer; 403 ``csrf_failed`` for a console request from elsewhere."""
        if not _is_by_console(request):
            return self.get_response(request)
        if not is_same_origin(request):
            return problems.respond(request, CsrfFailed())
        tokens.bring_in(request)
        response = self.get_response(request)
        response.headers.setdefault("Cache-Control", "no-store")
        if not request.path.startswith(GIVES_NO_TOKENS):
            tokens.take_out(request, response)
        return response


def _is_by_console(request: HttpRequest) -> bool:
    """Say so by the header; who brings a bearer token of his own wants the plain API."""
    if not request.path.startswith(API) or "HTTP_AUTHORIZATION" in request.META:
        return False
    return request.META.get(HEADER) == "1"
