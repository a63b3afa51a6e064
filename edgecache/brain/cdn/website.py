"""Buckets as websites: index and error documents, redirects to folders, types by extension.

As S3's website endpoints and static hosts do it. A bucket with an HTTP origin is none: its origin
has documents of its own.
"""

import mimetypes
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from typing import Final

from edgecache.brain.cdn import cache_status
from edgecache.brain.cdn.lookup import Lookup, LookupResult
from edgecache.brain.cdn.urls import CdnRequest, Page
from edgecache.brain.core.errors import KeyRefused, OriginMissing
from edgecache.brain.core.values import DEFAULT_CONTENT_TYPE, check_url_key
from edgecache.brain.http_caching.cache_keys import accepted_members

STATUSES: Final = {
    Page.OBJECT: HTTPStatus.OK,
    Page.FOLDER: HTTPStatus.FOUND,
    Page.FALLBACK: HTTPStatus.OK,
    Page.ERROR: HTTPStatus.NOT_FOUND,
}
# What is missing may be there a moment later: as the cache's own 404.
NOT_KEPT: Final = ("cache-control", "no-store")
OF_THE_DOCUMENT: Final = frozenset({"cache-control", "expires", "etag", "last-modified"})
FETCH_MODE: Final = "sec-fetch-mode"
VARY: Final = ("vary", "Accept, Sec-Fetch-Mode")
# Python's own table, without the machine's, and what it lacks or names as it was before.
TYPES: Final[Mapping[str, str]] = {
    **mimetypes.MimeTypes().types_map[True],
    ".7z": "application/x-7z-compressed",
    ".atom": "application/atom+xml",
    ".avif": "image/avif",
    ".bz2": "application/x-bzip2",
    ".flac": "audio/flac",
    ".geojson": "application/geo+json",
    ".gz": "application/gzip",
    ".ico": "image/x-icon",
    ".jsonld": "application/ld+json",
    ".js": "text/javascript",
    ".m4a": "audio/mp4",
    ".map": "application/json",
    ".md": "text/markdown",
    ".mjs": "text/javascript",
    ".oga": "audio/ogg",
    ".ogg": "audio/ogg",
    ".ogv": "video/ogg",
    ".otf": "font/otf",
    ".rss": "application/rss+xml",
    ".ttf": "font/ttf",
    ".vtt": "text/vtt",
    ".wasm": "application/wasm",
    ".wav": "audio/wav",
    ".webmanifest": "application/manifest+json",
    ".webp": "image/webp",
    ".woff": "font/woff",
    ".woff2": "font/woff2",
    ".xml": "application/xml",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}


def answers(request: CdnRequest) -> bool:
    """True if the bucket is a website for a request; a signed link opens what it names, no more."""
    is_signed = request.cache_url.expires_at is not None
    return bool(request.bucket.website_index) and not request.is_http and not is_signed


async def find(lookup: Lookup, request: CdnRequest) -> tuple[CdnRequest, LookupResult]:
    """Return the request that a website answers in place of a client's, and what it finds.

    Raises as ``Lookup.find``.
    """
    check_url_key(request.key)
    missing = OriginMissing()
    missing.is_remembered = True
    for page in _pages(request):
        # Names made from a key may be too long for one: nothing can be there.
        with suppress(KeyRefused):
            try:
                return page, _described(await lookup.find(page), page, missing)
            except OriginMissing as exc:
                missing = missing if _is_asked(page, missing) else exc
    raise missing


def status_of(request: CdnRequest, result: LookupResult) -> int:
    """Return the status of an answer before conditions and ranges are applied."""
    return result.status if request.page is None else STATUSES[request.page]


def headers_of(request: CdnRequest, headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return an object's headers as the answer of a website has them."""
    named = [(name, _typed(name, value, request.key)) for name, value in headers]
    if request.page is Page.ERROR:
        return [*(pair for pair in named if pair[0] not in OF_THE_DOCUMENT), NOT_KEPT]
    return [*named, VARY] if request.page is Page.FALLBACK else named


def _pages(request: CdnRequest) -> Iterator[CdnRequest]:
    """Yield what may answer a request, best first."""
    bucket, key = request.bucket, request.key
    index = bucket.website_index
    if not key or key.endswith("/"):
        yield _page(request, Page.OBJECT, key + index)
    else:
        yield _page(request, Page.OBJECT, key)
        if request.cache_url.folder:
            # Of its page no part is enough: what is found is kept, and so is that it is missing.
            yield replace(_page(request, Page.FOLDER, f"{key}/{index}"), wants_whole=True)
    if bucket.website_fallback and _is_navigation(request.fields):
        yield _page(request, Page.FALLBACK, index)
    if bucket.website_error:
        yield replace(_page(request, Page.ERROR, bucket.website_error), wants_whole=True)


def _page(request: CdnRequest, page: Page, key: str) -> CdnRequest:
    cache_url = request.cache_url
    target = replace(cache_url.target, key=key)
    return replace(request, cache_url=replace(cache_url, target=target), page=page)


def _described(result: LookupResult, page: CdnRequest, missing: OriginMissing) -> LookupResult:
    """Return a result as a miss if the origin was asked for what it does not have."""
    if not _is_asked(page, missing):
        return result
    return replace(result, cache_status=cache_status.forwarded("uri-miss", stored=False))


def _is_asked(request: CdnRequest, missing: OriginMissing) -> bool:
    return request.bucket.origin_id is not None and not missing.is_remembered


def _is_navigation(fields: Mapping[str, str]) -> bool:
    """True if a browser opens a page, or a client asks for HTML by its name.

    A script, a style or an image that is missing must not be HTML (RFC 9110 §12.5.1; the Fetch
    standard, "Sec-Fetch-Mode", which browsers send over TLS).
    """
    mode = fields.get(FETCH_MODE, "")
    return mode == "navigate" if mode else "text/html" in accepted_members(fields.get("accept", ""))


def _typed(name: str, value: str, key: str) -> str:
    """Return a header, the type by the key's extension where the upload had none."""
    if name != "content-type" or value not in {"", DEFAULT_CONTENT_TYPE}:
        return value
    _, dot, extension = key.rpartition("/")[2].rpartition(".")
    found = TYPES.get(dot + extension.lower(), DEFAULT_CONTENT_TYPE)
    return f"{found}; charset=utf-8" if found.startswith("text/") else found
