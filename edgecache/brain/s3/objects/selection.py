"""Which bytes of an object a response contains: all, a range, or a part of its upload."""

from typing import NamedTuple

from edgecache.brain.aws.errors import S3Error
from edgecache.brain.aws.requests import S3Request
from edgecache.brain.core.values import ObjectVersion, Span
from edgecache.brain.s3.objects import conditions
from edgecache.protocol.ranges import RangeNotSatisfiable, requested

PART_LIMIT = 10_000


class ObjectSelection(NamedTuple):
    """A span with its status and headers.

    is_whole: it has all bytes of the object.
    part: the number of the requested part, or 0.
    """

    span: Span
    status: int
    headers: tuple[tuple[str, str], ...] = ()
    is_whole: bool = True
    part: int = 0


def select(request: S3Request, found: ObjectVersion) -> ObjectSelection:
    """Return which bytes a GET or HEAD asks for.

    Raises S3Error: InvalidRange, InvalidPartNumber, InvalidRequest (a part and a range),
    InvalidArgument.
    """
    text = request.header("range")
    if found.size < 0:
        # The origin does not say how much comes: all of it (RFC 9110 §14.2 allows that).
        return ObjectSelection(Span(0, 0), 200)
    if request.has("partNumber"):
        if text:
            raise S3Error(
                "InvalidRequest", "Cannot specify both Range header and partNumber query parameter."
            )
        return _part(part_number(request), found)
    if not text or not conditions.holds_range(request, found.etag, found.last_modified):
        return ObjectSelection(Span(0, found.size), 200)
    try:
        asked = requested(text, found.size)
    except RangeNotSatisfiable:
        raise S3Error(
            "InvalidRange",
            extra={"RangeRequested": text[:100], "ActualObjectSize": str(found.size)},
            headers={"content-range": f"bytes */{found.size}"},
        ) from None
    if asked is None:
        return ObjectSelection(Span(0, found.size), 200)
    return _partial(Span(*asked), found.size)


def part_number(request: S3Request) -> int:
    """Parse ``partNumber``. Raises S3Error InvalidArgument."""
    number = request.integer("partNumber", 0, maximum=PART_LIMIT + 1)
    if not 1 <= number <= PART_LIMIT:
        raise S3Error(
            "InvalidArgument",
            "Part number must be an integer between 1 and 10000, inclusive",
            extra={"ArgumentName": "partNumber", "ArgumentValue": request.query("partNumber")[:20]},
        )
    return number


def _part(number: int, found: ObjectVersion) -> ObjectSelection:
    sizes = found.parts or (found.size,)
    if number > len(sizes):
        raise S3Error("InvalidPartNumber", extra={"ActualPartCount": str(len(sizes))})
    start = sum(sizes[: number - 1])
    count = (("x-amz-mp-parts-count", str(len(sizes))),) if found.parts else ()
    selected = _partial(Span(start, sizes[number - 1]), found.size)
    headers = (*selected.headers, *count)
    return ObjectSelection(selected.span, selected.status, headers, is_whole=False, part=number)


def _partial(span: Span, size: int) -> ObjectSelection:
    if span.length == 0:
        # An empty object, or an empty last part, which Content-Range cannot express.
        return ObjectSelection(span, 200, is_whole=size == 0)
    text = f"bytes {span.start}-{span.start + span.length - 1}/{size}"
    return ObjectSelection(span, 206, (("content-range", text),), is_whole=False)
