"""Cookie authentication of the console for the public API, for same-origin requests only."""

from collections.abc import Callable
from typing import Final

from django.http import HttpRequest, HttpResponse

from common import problems
from console import tokens
from console.errors import CsrfFailed

# The header X-Zonal-Console in WSGI's spelling.
HEADER: Final = "HTTP_X_ZONAL_CONSOLE"
API: Final = "/v1/"
# Responses of all other paths are searched for tokens. SQL results are long, and their columns can
# have any name.
RETURNS_NO_TOKENS: Final = "/v1/sql"


class ConsoleMiddleware:
    """Lets the console's pages call the API with tokens in cookies that scripts cannot read.

    A console request has ``X-Zonal-Console: 1``, which neither a form nor a script of another site
    can send (it needs a preflight, which is never answered), and must also be same-origin. Other
    requests are unchanged: cookies alone never authenticate a caller.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer; 403 ``csrf_failed`` for a console request from another origin."""
        if not _is_by_console(request):
            return self.get_response(request)
        if not is_same_origin(request):
            return problems.respond(request, CsrfFailed())
        tokens.bring_in(request)
        response = self.get_response(request)
        response.headers.setdefault("Cache-Control", "no-store")
        if not request.path.startswith(RETURNS_NO_TOKENS):
            tokens.take_out(request, response)
        return response


def _is_by_console(request: HttpRequest) -> bool:
    # A request with its own bearer token uses the plain API.
    if not request.path.startswith(API) or "HTTP_AUTHORIZATION" in request.META:
        return False
    return request.META.get(HEADER) == "1"


def is_same_origin(request: HttpRequest) -> bool:
    """True if the sent ones of ``Sec-Fetch-Site`` and ``Origin`` both match this origin.

    A request with neither header does not come from a current browser and is refused. Scripts can
    set neither (Fetch §2.2.2, forbidden request-headers).
    """
    site = request.headers.get("Sec-Fetch-Site")
    origin = request.headers.get("Origin")
    if site is None and origin is None:
        return False
    if site not in {None, "same-origin"}:
        return False
    return origin in {None, f"{request.scheme}://{request.get_host()}"}
