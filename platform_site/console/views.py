"""The pages: the same for every visitor; their scripts fill them through the API."""

from http import HTTPStatus
from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

CONTENT_SECURITY_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        # The QR code is a data: URL in the API's response.
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        # No script turns text into markup, so no text that it shows can become a script.
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
def page(
    request: HttpRequest, template: str, status: int = HTTPStatus.OK, rest: str = ""
) -> HttpResponse:
    """Show a page; ``rest`` is the path of a page that does not exist."""
    return render_page(f"console/{template}", status)


def render_page(template: str, status: int = HTTPStatus.OK) -> HttpResponse:
    """Return a page with the console's headers. It is the same for every visitor."""
    context = {
        "service": settings.SERVICE_NAME.capitalize(),
        "has_cache": settings.HAS_CACHE,
        "has_providers": bool(settings.OAUTH.providers),
    }
    html = render_to_string(template, context)
    return HttpResponse(html, status=status, headers=HEADERS)


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Send /console to /console/, so that the pages have one address each."""
    return HttpResponseRedirect("/console/")
