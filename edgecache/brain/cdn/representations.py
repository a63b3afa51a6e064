"""Which part of an answer a client is given: all, a range, or word that it has it (RFC 9110)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus

from edgecache.brain.delivery.delivery import Span
from edgecache.brain.values import Found
from edgecache.http.heads import HeaderPairs
from edgecache.protocol.ranges import RangeNotSatisfiable, requested


class Refused(Exception):
    """A condition that does not hold, or a range that is not there."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is sent. has_length: of an answer without a body, whether its length is said."""

    status: int
    span: Span
    headers: HeaderPairs
    has_length: bool = True


def choose(found: Found, headers: HeaderPairs, request: Mapping[str, str]) -> Chosen:
    """Give what a request's conditions and range ask for.

    headers: of the whole answer, lower-case names. Raises Refused (412, 416).
    """
    fields = dict(headers)
    etag = fields.get("etag", "")
    modified = _date(fields.get("last-modified", ""))
    _check_match(request, etag, modified)
    if _has_it(request, etag, modified):
        kept = [pair for pair in headers if pair[0] != "content-type"]
        return Chosen(HTTPStatus.NOT_MODIFIED, Span(0, 0), kept, has_length=False)
    whole = Chosen(HTTPStatus.OK, Span(0, max(0, found.size)), headers)
    asked = request.get("range", "")
    if not asked or found.size < 0 or not _range_holds(request, etag, modified):
        return whole
    try:
        span = requested(asked, found.size)
    except RangeNotSatisfiable:
        raise Refused(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE) from None
    if span is None or found.size == 0:
        return whole
    start, length = span
    said = ("content-range", f"bytes {start}-{start + length - 1}/{found.size}")
    return Chosen(HTTPStatus.PARTIAL_CONTENT, Span(start, length), [*headers, said])


def _check_match(request: Mapping[str, str], etag: str, modified: datetime | None) -> None:
    match = request.get("if-match", "")
    if match:
        # Compared strongly: a weak tag matches nothing (RFC 9110 §13.1.1).
        if match.strip() != "*" and (etag.startswith("W/") or etag not in _tags(match)):
            raise Refused(HTTPStatus.PRECONDITION_FAILED)
        return
    since = _date(request.get("if-unmodified-since", ""))
    if since is not None and modified is not None and modified > since:
        raise Refused(HTTPStatus.PRECONDITION_FAILED)


def _has_it(request: Mapping[str, str], etag: str, modified: datetime | None) -> bool:
    none_match = request.get("if-none-match", "")
    if none_match:
        weak = {tag.removeprefix("W/") for tag in _tags(none_match)}
        return none_match.strip() == "*" or (bool(etag) and etag.removeprefix("W/") in weak)
    since = _date(request.get("if-modified-since", ""))
    return since is not None and modified is not None and modified <= since


def _range_holds(request: Mapping[str, str], etag: str, modified: datetime | None) -> bool:
    condition = request.get("if-range", "").strip()
    if not condition:
        return True
    if condition.startswith(('"', "W/")):
        return condition == etag and not etag.startswith("W/")
    return modified is not None and _date(condition) == modified


def _tags(text: str) -> list[str]:
    return [tag.strip() for tag in text.split(",")]


def _date(text: str) -> datetime | None:
    if not text:
        return None
    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
