"""Conditional requests: If-Match and others, against an object's ETag and time (RFC 9110 §13)."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from edgecache.brain.aws.errors import S3Error, not_implemented
from edgecache.brain.aws.requests import S3Request
from edgecache.brain.core.values import BucketInfo, Conditions
from edgecache.http.response_head import parse_http_date

ANY = "*"
# Conditions of a delete beside If-Match: time and size.
OF_DELETES = ("x-amz-if-match-last-modified-time", "x-amz-if-match-size")
SIZE_DIGITS = 18
_OF_READS = frozenset(("if-match", "if-none-match", "if-modified-since", "if-unmodified-since"))


class NotModified(Exception):
    """The client's copy is current: 304 for a GET or HEAD.

    Its text is the name of the condition. headers: of the response.
    """

    headers: Sequence[tuple[str, str]] = ()


def has_any(request: S3Request) -> bool:
    return not _OF_READS.isdisjoint(request.headers)


def check_read(request: S3Request, etag: str, last_modified: datetime) -> None:
    """Apply the conditions of a GET or HEAD. Raises S3Error PreconditionFailed, NotModified."""
    if has_any(request):
        _check(request.header, "if-", etag, last_modified)


def check_copy(request: S3Request, etag: str, last_modified: datetime) -> None:
    """Apply the conditions on the source of a copy.

    Raises S3Error PreconditionFailed if one does not hold.
    """
    try:
        _check(request.header, "x-amz-copy-source-if-", etag, last_modified)
    except NotModified as exc:
        raise S3Error("PreconditionFailed", extra={"Condition": str(exc)}) from None


def write_conditions(request: S3Request, bucket: BucketInfo) -> Conditions:
    """Return the conditions of a write to a bucket.

    Raises S3Error: NotImplemented for If-None-Match with an ETag in a bucket with its own origin,
    as many origins refuse it; InvalidArgument for both conditions, and for no or several ETags.
    """
    match, none_match = _value(request, "if-match"), _value(request, "if-none-match")
    if none_match not in {None, ANY} and bucket.origin_id is not None:
        raise not_implemented("If-None-Match other than * in a bucket with an origin of its own")
    if match is not None and none_match is not None:
        raise S3Error("InvalidArgument", "If-Match and If-None-Match exclude each other.")
    return Conditions(
        None if match is None else one_etag(match),
        None if none_match is None else one_etag(none_match),
    )


def one_etag(text: str) -> str:
    """Return the ETag that a write's condition names, without quotes; ``*`` for any.

    Raises S3Error InvalidArgument for none or several, of which the others would be ignored.
    """
    etags = _etags(text)
    if len(etags) != 1:
        raise S3Error("InvalidArgument", "A condition of a write names one ETag, or *.")
    return etags[0]


def moment(text: str, name: str) -> datetime:
    """Return the time that a delete's condition names, to the second.

    text: as HTTP or ISO 8601 has it, with a time of day. name: of the condition. Raises S3Error
    InvalidArgument.
    """
    found = parse_http_date(text)
    try:
        if "T" in text[10:11]:
            iso = datetime.fromisoformat(text)
            found = iso.replace(tzinfo=iso.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        found = None
    if found is None:
        raise S3Error("InvalidArgument", f"{name} is not a time.")
    return found.replace(microsecond=0)


def size_bytes(text: str, name: str) -> int:
    """Return the size that a delete's condition names. Raises S3Error InvalidArgument."""
    if not (text.isascii() and text.isdigit() and len(text) <= SIZE_DIGITS):
        raise S3Error("InvalidArgument", f"{name} is not a number of bytes.")
    return int(text)


def of_write(request: S3Request) -> str:
    """Return the names of the conditions of a write or delete, as errors have them."""
    headers = ("If-None-Match", "If-Match", *OF_DELETES)
    return ", ".join(name for name in headers if name.lower() in request.headers)


def holds_range(request: S3Request, etag: str, last_modified: datetime) -> bool:
    """True if a Range applies: If-Range names the current version, or is absent."""
    text = request.header("if-range")
    if not text:
        return True
    if text.startswith('"'):
        return text == f'"{etag}"'
    return parse_http_date(text) == last_modified.replace(microsecond=0)


def _check(header: Callable[[str], str], prefix: str, etag: str, last_modified: datetime) -> None:
    named = prefix.removesuffix("if-")
    modified = last_modified.replace(microsecond=0)
    match = header(prefix + "match")
    if match:
        if not {ANY, etag} & set(_etags(match)):
            raise S3Error("PreconditionFailed", extra={"Condition": f"{named}If-Match"})
    else:
        since = parse_http_date(header(prefix + "unmodified-since"))
        if since is not None and modified > since:
            condition = f"{named}If-Unmodified-Since"
            raise S3Error("PreconditionFailed", extra={"Condition": condition})
    none_match = header(prefix + "none-match")
    if none_match:
        if {ANY, etag} & set(_etags(none_match)):
            raise NotModified(f"{named}If-None-Match")
        return
    since = parse_http_date(header(prefix + "modified-since"))
    # Versions of an HTTP origin's response without an ETag cannot be distinguished if it is not
    # stored.
    if since is not None and modified <= since and etag:
        raise NotModified(f"{named}If-Modified-Since")


def _value(request: S3Request, header: str) -> str | None:
    return request.header(header) if header in request.headers else None


def _etags(text: str) -> list[str]:
    etags = (each.strip().removeprefix("W/").strip('"') for each in text.split(","))
    return [etag for etag in etags if etag]
