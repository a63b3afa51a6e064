"""If-Match and its kin, against an object's ETag and time (RFC 9110 §13)."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from edgecache.brain.s3.errors import S3Error
from edgecache.brain.s3.requests import S3Request
from edgecache.brain.values import Conditions

ANY = "*"
_OF_READS = frozenset(("if-match", "if-none-match", "if-modified-since", "if-unmodified-since"))


class Unchanged(Exception):
    """What the client holds is still right: 304 for a GET or HEAD. headers: that it may renew."""

    headers: Sequence[tuple[str, str]] = ()


def has_any(request: S3Request) -> bool:
    """True if a GET or HEAD has conditions."""
    return not _OF_READS.isdisjoint(request.headers)


def check_read(request: S3Request, etag: str, last_modified: datetime) -> None:
    """Apply the conditions of a GET or HEAD.

    Raises S3Error PreconditionFailed, Unchanged.
    """
    if has_any(request):
        _check(request.header, "if-", etag, last_modified)


def check_copy(request: S3Request, etag: str, last_modified: datetime) -> None:
    """Apply the conditions on the source of a copy; each that does not hold is a refusal.

    Raises S3Error PreconditionFailed.
    """
    try:
        _check(request.header, "x-amz-copy-source-if-", etag, last_modified)
    except Unchanged:
        raise S3Error("PreconditionFailed") from None


def of_write(request: S3Request) -> Conditions:
    """Give what must hold for a write.

    Raises S3Error: NotImplemented for what AWS does not take either, InvalidArgument for both.
    """
    if_match = request.header("if-match")
    if_none_match = request.header("if-none-match")
    if if_none_match not in {"", ANY}:
        raise S3Error("NotImplemented", "If-None-Match of a write takes nothing but *.")
    if if_match and if_none_match:
        raise S3Error("InvalidArgument", "If-Match and If-None-Match exclude each other.")
    return Conditions(_etags(if_match)[0] if if_match else None, bool(if_none_match))


def holds_range(request: S3Request, etag: str, last_modified: datetime) -> bool:
    """Say whether a Range counts: If-Range names what is there, or is not said."""
    text = request.header("if-range")
    if not text:
        return True
    if text.startswith('"'):
        return text == f'"{etag}"'
    return _date(text) == last_modified.replace(microsecond=0)


def _check(header: Callable[[str], str], prefix: str, etag: str, last_modified: datetime) -> None:
    modified = last_modified.replace(microsecond=0)
    match = header(prefix + "match")
    if match:
        if not {ANY, etag} & set(_etags(match)):
            raise S3Error("PreconditionFailed", extra={"Condition": "If-Match"})
    else:
        since = _date(header(prefix + "unmodified-since"))
        if since is not None and modified > since:
            raise S3Error("PreconditionFailed", extra={"Condition": "If-Unmodified-Since"})
    none_match = header(prefix + "none-match")
    if none_match:
        if {ANY, etag} & set(_etags(none_match)):
            raise Unchanged
        return
    since = _date(header(prefix + "modified-since"))
    if since is not None and modified <= since:
        raise Unchanged


def _etags(text: str) -> list[str]:
    return [each.strip().removeprefix("W/").strip('"') for each in text.split(",")]


def _date(text: str) -> datetime | None:
    if not text:
        return None
    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
