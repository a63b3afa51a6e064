"""The pages outside of console and admin: the landing page and the API docs."""

from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.request import Request
from rest_framework.response import Response

from platform_site.console.views import render_page

API_DOCS_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        # Swagger UI's icons are in its style sheet.
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)


@require_safe
def landing(request: HttpRequest) -> HttpResponse:
    """Show what runs here, with links."""
    return render_page("landing.html")


class ApiDocsView(SpectacularSwaggerSplitView):
    """Swagger UI over the OpenAPI document, from files of this server alone."""

    url_name = "schema"
    title = "API docs"
    template_name = "docs/api.html"

    @extend_schema(exclude=True)
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return the page, or its script with ``?script``."""
        response: Response = super().get(request, *args, **kwargs)  # type: ignore[no-untyped-call]  # untyped library
        response.headers["Content-Security-Policy"] = API_DOCS_POLICY
        response.headers["Referrer-Policy"] = "no-referrer"
        return response
