"""The console's pages: the same for every visitor; their scripts load data from the API."""

from http import HTTPStatus
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.request import validate_host
from django.template.loader import render_to_string
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_safe

from console.pages import navigation
from outbox.webhooks.events import EVENTS

CONTENT_SECURITY_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        # The QR code is a data: URL in the API's response.
        "img-src 'self' data:",
        "connect-src 'self'",
        # Scripts send forms. A form submitted by the browser would put its fields into the URL.
        "form-action 'none'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        # No script converts text to markup, so displayed text cannot become a script.
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
HEADERS: Final = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), "
    "publickey-credentials-create=(self), publickey-credentials-get=(self)",
    "Cache-Control": "no-cache",
}


@require_safe
# The page has no data of its visitor, so its compressed length reveals nothing.
@gzip_page
def page(request: HttpRequest, name: str, template: str) -> HttpResponse:
    """Show a page of the console."""
    elsewhere = _at_localhost(request)
    if elsewhere is not None:
        return elsewhere
    response = render_page(f"console/{template}", here=name)
    if name == "objects":
        # Uploads and previews go to the object API, by URLs that the platform signs; downloads
        # in a frame: to navigate there asks to leave the page while files are uploaded.
        allowed = f"connect-src 'self' {settings.CACHE.s3_url}; frame-src {settings.CACHE.s3_url}"
        policy = CONTENT_SECURITY_POLICY.replace("connect-src 'self'", allowed)
        response["Content-Security-Policy"] = policy
    return response


def _at_localhost(request: HttpRequest) -> HttpResponse | None:
    """Return the redirect from 127.0.0.1 to localhost in development, None for other hosts.

    Browsers tie passkeys to names, and `make run` prints an address.
    """
    address, name = "127.0.0.1", "localhost"
    host = request.get_host()
    if settings.IS_PRODUCTION or host.partition(":")[0] != address:
        return None
    port = host.removeprefix(address)
    if not validate_host(name, settings.ALLOWED_HOSTS or [name]):
        return None
    return HttpResponseRedirect(f"{request.scheme}://{name}{port}{request.get_full_path()}")


def missing() -> HttpResponse:
    """Return the 404 page."""
    return render_page("console/missing.html", HTTPStatus.NOT_FOUND)


def render_page(
    template: str, status: int = HTTPStatus.OK, *, here: str = "", **more: Any
) -> HttpResponse:
    """Return a page with the console's headers. It is the same for every visitor.

    more: further values for the template.
    """
    context = {
        **more,
        "service": settings.SERVICE_NAME.capitalize(),
        "has_cache": settings.HAS_CACHE,
        "has_top_ups": bool(settings.TOP_UP_PROVIDER),
        "webhook_events": EVENTS,
        # After the longest statement: the wait for its turn, or for the first one's database.
        "answer_s": settings.SQL.timeout_ms // 1000 + 30,
        "navigation": navigation(),
        "here": here,
    }
    html = render_to_string(template, context)
    return HttpResponse(html, status=status, headers=HEADERS)
