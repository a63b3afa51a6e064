"""Conversion of an origin's response headers to an object's fields."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from edgecache.brain.core.values import DEFAULT_CONTENT_TYPE, METADATA_PREFIX, OBJECT_HEADERS
from edgecache.brain.origins.driver import OriginResponse
from edgecache.http.headers import decoded
from edgecache.http.response_head import parse_http_date

Pairs = list[tuple[str, str]]


def pairs_of(raw: Iterable[tuple[bytes, bytes]]) -> Pairs:
    """Return the fields: names in lower case, values decoded byte for byte (latin-1)."""
    return [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in raw]


def answer_of(status: int, pairs: Pairs) -> OriginResponse:
    """Return the response that the headers describe, without a body.

    An object's fields are text: UTF-8 where they are that.
    """
    fields = {name: decoded(value) for name, value in reversed(pairs)}
    length = fields.get("content-length", "")
    return OriginResponse(
        status=status,
        size=int(length) if length.isascii() and length.isdigit() else None,
        etag=etag_of(fields),
        content_type=fields.get("content-type", DEFAULT_CONTENT_TYPE)[:255],
        last_modified=date_of(fields.get("last-modified", "")),
        headers={name: fields[name] for name in OBJECT_HEADERS if name in fields},
        metadata={
            name.removeprefix(METADATA_PREFIX): value
            for name, value in fields.items()
            if name.startswith(METADATA_PREFIX)
        },
        raw=pairs,
    )


def etag_of(fields: Mapping[str, str]) -> str:
    """Return the ETag without quotes; a weak one as S3 would, without its mark."""
    return fields.get("etag", "").strip().removeprefix("W/").strip('"')[:200]


def date_of(text: str) -> datetime:
    """Return an HTTP date, or now."""
    return parse_http_date(text) or datetime.now(UTC).replace(microsecond=0)
