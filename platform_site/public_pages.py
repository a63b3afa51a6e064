"""The pages outside of console and admin: the landing page, the API docs and their document."""

import threading
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.renderers import BaseRenderer
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

_lock = threading.Lock()
_documents: dict[type[BaseRenderer], bytes] = {}


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


class SchemaView(SpectacularAPIView):
    """The OpenAPI document, which is the same for everybody.

    It takes a second of the processor to make, so that anonymous requests for it could stop the
    platform: each process makes it once.
    """

    @extend_schema(exclude=True)
    def get(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponse:
        """Return the document as YAML or, by ``Accept`` or ``?format=json``, as JSON."""
        renderer: BaseRenderer = request.accepted_renderer
        charset = f"; charset={renderer.charset}" if renderer.charset else ""
        return HttpResponse(
            _document(type(renderer)),
            content_type=f"{renderer.media_type}{charset}",
            headers={"Content-Disposition": f'inline; filename="Zonal.{renderer.format}"'},
        )


def _document(kind: type[BaseRenderer]) -> bytes:
    with _lock:
        if kind not in _documents:
            generator = SpectacularAPIView.generator_class()
            schema = generator.get_schema(request=None, public=True)  # type: ignore[no-untyped-call]  # untyped library
            _documents[kind] = kind().render(schema, None, {})
        return _documents[kind]
