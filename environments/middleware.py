"""Middleware for the scope of the request, derived from its principal."""

from collections.abc import Callable, Iterable
from typing import cast

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse

from common.principals import PlatformRequest
from common.scoping import carried, within


class ScopeMiddleware:
    """Enters the scope of the principal for the view and for what its response streams.

    An anonymous request has none: its queries of tenant models raise OutsideScope.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, http_request: HttpRequest) -> HttpResponse:
        """Call the view within the scope."""
        request = cast(PlatformRequest, http_request)
        if request.principal is None:
            return self.get_response(request)
        with within(request.principal.scope):
            response = self.get_response(request)
            # A file is sent by the system, and queries nothing.
            if response.streaming and getattr(response, "file_to_stream", None) is None:
                streamed = cast(StreamingHttpResponse, response)
                chunks = cast(Iterable[bytes], streamed.streaming_content)
                streamed.streaming_content = carried(iter(chunks))
            return response
