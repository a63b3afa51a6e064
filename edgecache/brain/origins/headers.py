"""Conversion of an origin's response headers to an object's fields."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final

from edgecache.brain.core.values import (
    DEFAULT_CONTENT_TYPE,
    METADATA_PREFIX,
    OBJECT_HEADERS,
    Span,
)
from edgecache.brain.origins.driver import OriginResponse
from edgecache.http.headers import decoded
from edgecache.http.response_head import parse_http_date

CONTENT_RANGE: Final = re.compile(r"bytes ([0-9]{1,19})-([0-9]{1,19})/([0-9]{1,19})", re.ASCII)

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


def part_of(answer: OriginResponse) -> OriginResponse:
    """Return a 206 of one part as the response that it is a part of; any other one unchanged."""
    found = CONTENT_RANGE.fullmatch(dict(answer.raw).get("content-range", ""))
    if answer.status != HTTPStatus.PARTIAL_CONTENT or found is None:
        return answer
    first, last, size = (int(text) for text in found.groups())
    part = Span(first, last + 1 - first)
    if not first <= last < size or answer.size not in {None, part.length}:
        return answer
    raw = [pair for pair in answer.raw if pair[0] != "content-range"]
    return replace(answer, status=200, size=size, part=part, raw=raw)


def etag_of(fields: Mapping[str, str]) -> str:
    """Return the ETag without quotes; a weak one as S3 would, without its mark."""
    return fields.get("etag", "").strip().removeprefix("W/").strip('"')[:200]


def date_of(text: str) -> datetime:
    """Return an HTTP date, or now."""
    return parse_http_date(text) or datetime.now(UTC).replace(microsecond=0)
