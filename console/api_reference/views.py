"""``/v1/schema`` and ``/v1/docs``: documents that are the same for every visitor.

They are prepared once, compressed, with an ETag.
"""

import functools
import gzip
import hashlib
import threading
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.cache import get_conditional_response, patch_vary_headers
from django.utils.http import quote_etag
from django.views.decorators.http import require_safe
from drf_spectacular.renderers import OpenApiJsonRenderer, OpenApiYamlRenderer
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from console.api_reference import outline

# Browsers revalidate each time, and mostly receive a 304 without a body.
CACHE_CONTROL: Final = "public, no-cache"
POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
_lock = threading.Lock()


@dataclass(frozen=True)
class PublishedDocument:
    """A document. etag: of the whole; content_type: with its charset."""

    content_type: str
    plain: bytes
    compressed: bytes
    etag: str

    @classmethod
    def of(cls, body: bytes, content_type: str) -> "PublishedDocument":
        """Return a document of these bytes."""
        digest = hashlib.sha256(content_type.encode() + b"\0" + body).hexdigest()
        return cls(content_type, body, gzip.compress(body, mtime=0), quote_etag(digest[:32]))

    def respond(self, request: HttpRequest, **headers: str) -> HttpResponse:
        """Return the document, compressed if the client takes it, or 304 if it has it."""
        is_compressed = "gzip" in request.headers.get("Accept-Encoding", "")
        body = self.compressed if is_compressed else self.plain
        # Weak: the same document has two encodings.
        response = HttpResponse(body, content_type=self.content_type, headers=headers)
        response["ETag"] = f"W/{self.etag}"
        response["Cache-Control"] = CACHE_CONTROL
        patch_vary_headers(response, ["Accept-Encoding"])
        if is_compressed:
            response["Content-Encoding"] = "gzip"
        found = get_conditional_response(request, etag=response["ETag"], response=response)
        return found if isinstance(found, HttpResponse) else response


_documents: dict[type[BaseRenderer], PublishedDocument] = {}


class SchemaView(SpectacularAPIView):
    """The OpenAPI document as YAML or, by ``Accept`` or ``?format=json``, as JSON."""

    @extend_schema(exclude=True)
    def get(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponse:
        """Return the document."""
        renderer: BaseRenderer = request.accepted_renderer
        with _lock:
            document = _rendered(type(renderer))
        name = f'inline; filename="Zonal.{renderer.format}"'
        return document.respond(request, **{"Content-Disposition": name})


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Show the document's operations with examples, on one page without its own scripts."""
    with _lock:
        document = _page()
    headers = {"Content-Security-Policy": POLICY, "Referrer-Policy": "no-referrer"}
    return document.respond(request, **headers)


def prepare() -> None:
    """Prepare page and document before the first request for them.

    This takes a second of processor time: if each request did it, anonymous requests could overload
    the platform.
    """
    with _lock:
        _page()
        for renderer in (OpenApiJsonRenderer, OpenApiYamlRenderer):
            _rendered(renderer)


@functools.cache
def _schema() -> dict[str, Any]:
    generator = SpectacularAPIView.generator_class()
    schema: dict[str, Any] = generator.get_schema(request=None, public=True)  # type: ignore[no-untyped-call]  # untyped library
    return schema


def _rendered(kind: type[BaseRenderer]) -> PublishedDocument:
    if kind not in _documents:
        charset = f"; charset={kind.charset}" if kind.charset else ""
        body = kind().render(_schema(), None, {})
        _documents[kind] = PublishedDocument.of(body, f"{kind.media_type}{charset}")
    return _documents[kind]


@functools.cache
def _page() -> PublishedDocument:
    context = {
        "service": settings.SERVICE_NAME.capitalize(),
        "about": outline.paragraphs(_schema()["info"]["description"]),
        "chapters": outline.chapters(_schema(), settings.PUBLIC_URL),
    }
    html = render_to_string("docs/api.html", context)
    return PublishedDocument.of(html.encode(), "text/html; charset=utf-8")
