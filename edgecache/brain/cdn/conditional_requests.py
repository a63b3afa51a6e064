"""Which bytes of a response a client gets: all, a range, or none with a 304 (RFC 9110)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Final

from edgecache.brain.core.values import ObjectVersion, Span
from edgecache.http.response_head import HeaderPairs, parse_http_date
from edgecache.protocol.ranges import RangeNotSatisfiable, requested

# RFC 9110 §8.8.3; without quotes, as some clients send them, they end at a comma.
TAG: Final = re.compile(r'(?:W/)?"[^"]*"|[^\s,"]+')


# These speak of the bytes that are sent, or of all of them where a client reads them so: a part has
# others (RFC 9530 §2, RFC 1864). The other digests and all other fields are the representation's.
OF_CONTENT: Final = frozenset(
    {"content-digest", "content-md5", "x-ms-content-crc64", "x-ms-content-md5"}
)
CHECKSUMS: Final = "x-amz-checksum-"
RANGES: Final = ("accept-ranges", "bytes")


class ConditionFailed(Exception):
    """A condition does not hold (412), or a range is not satisfiable (416).

    headers: to send. cache_status: of the response that it was compared with.
    """

    def __init__(self, status: HTTPStatus, headers: HeaderPairs = ()) -> None:
        super().__init__(status.phrase)
        self.status = status
        self.headers = headers
        self.cache_status = ""


@dataclass(frozen=True, slots=True)
class ResponseSelection:
    status: int
    span: Span
    headers: HeaderPairs


def whole(
    version: ObjectVersion, headers: HeaderPairs, status: int = HTTPStatus.OK
) -> ResponseSelection:
    """Return all of a response. Conditions and ranges apply to a 200 only (RFC 9110 §13.2.1)."""
    return ResponseSelection(status, Span(0, max(0, version.size)), headers)


def select(
    version: ObjectVersion, headers: HeaderPairs, request: Mapping[str, str]
) -> ResponseSelection:
    """Apply a request's conditions and range.

    headers: of the complete response, lower-case names. Raises ConditionFailed (412, 416).

    If its length is known, the cache answers ranges, whatever the origin says about its own.
    """
    if version.size >= 0:
        headers = [*(pair for pair in headers if pair[0] != RANGES[0]), RANGES]
    fields = dict(headers)
    etag = fields.get("etag", "")
    modified = parse_http_date(fields.get("last-modified", ""))
    _check_match(request, etag, modified)
    if _is_current(request, etag, modified):
        remaining = [pair for pair in _without_content(headers) if pair[0] != "content-type"]
        return ResponseSelection(HTTPStatus.NOT_MODIFIED, Span(0, 0), remaining)
    text = request.get("range", "")
    if not text or version.size < 0 or not _range_holds(request, etag, modified):
        return whole(version, headers)
    try:
        span = requested(text, version.size)
    except RangeNotSatisfiable:
        satisfiable = ("content-range", f"bytes */{version.size}")
        raise ConditionFailed(
            HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, [RANGES, satisfiable]
        ) from None
    if span is None or version.size == 0:
        return whole(version, headers)
    start, length = span
    content_range = ("content-range", f"bytes {start}-{start + length - 1}/{version.size}")
    return ResponseSelection(
        HTTPStatus.PARTIAL_CONTENT,
        Span(start, length),
        [*_without_content(headers), content_range],
    )


def _without_content(headers: HeaderPairs) -> list[tuple[str, str]]:
    """Return the headers of a response that has not all of the content."""
    return [
        (name, value)
        for name, value in headers
        if name not in OF_CONTENT and not name.startswith(CHECKSUMS)
    ]


def _check_match(request: Mapping[str, str], etag: str, modified: datetime | None) -> None:
    match = request.get("if-match", "")
    if match:
        # Strong comparison: a weak tag matches nothing (RFC 9110 §13.1.1).
        if match.strip() != "*" and (etag.startswith("W/") or etag not in _tags(match)):
            raise ConditionFailed(HTTPStatus.PRECONDITION_FAILED)
        return
    since = parse_http_date(request.get("if-unmodified-since", ""))
    if since is not None and modified is not None and modified > since:
        raise ConditionFailed(HTTPStatus.PRECONDITION_FAILED)


def _is_current(request: Mapping[str, str], etag: str, modified: datetime | None) -> bool:
    none_match = request.get("if-none-match", "")
    if none_match:
        weak = {tag.removeprefix("W/") for tag in _tags(none_match)}
        return none_match.strip() == "*" or (bool(etag) and etag.removeprefix("W/") in weak)
    since = parse_http_date(request.get("if-modified-since", ""))
    return since is not None and modified is not None and modified <= since


def _range_holds(request: Mapping[str, str], etag: str, modified: datetime | None) -> bool:
    condition = request.get("if-range", "").strip()
    if not condition:
        return True
    if condition.startswith(('"', "W/")):
        return condition == etag and not etag.startswith("W/")
    return modified is not None and parse_http_date(condition) == modified


def _tags(text: str) -> list[str]:
    return TAG.findall(text)
