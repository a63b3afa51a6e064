"""Documents that are the same for every visitor: prepared once, compressed, with an ETag."""

import gzip
import hashlib
from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response, patch_vary_headers
from django.utils.http import quote_etag

# Browsers revalidate each time, and mostly receive a 304 without a body.
CACHE_CONTROL: Final = "public, no-cache"


@dataclass(frozen=True)
class PublishedDocument:
    """A document. etag: of the whole; content_type: with its charset."""

    content_type: str
    plain: bytes
    packed: bytes
    etag: str

    @classmethod
    def of(cls, body: bytes, content_type: str) -> "PublishedDocument":
        """Return a document of these bytes."""
        digest = hashlib.sha256(content_type.encode() + b"\0" + body).hexdigest()
        return cls(content_type, body, gzip.compress(body, mtime=0), quote_etag(digest[:32]))

    def respond(self, request: HttpRequest, **headers: str) -> HttpResponse:
        """Return the document, compressed if the client takes it, or 304 if it has it."""
        is_packed = "gzip" in request.headers.get("Accept-Encoding", "")
        body = self.packed if is_packed else self.plain
        # Weak: the same document has two encodings.
        response = HttpResponse(body, content_type=self.content_type, headers=headers)
        response["ETag"] = f"W/{self.etag}"
        response["Cache-Control"] = CACHE_CONTROL
        patch_vary_headers(response, ["Accept-Encoding"])
        if is_packed:
            response["Content-Encoding"] = "gzip"
        found = get_conditional_response(request, etag=response["ETag"], response=response)
        return found if isinstance(found, HttpResponse) else response
