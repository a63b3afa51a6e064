"""Which form an answer of SQL has: JSON, or rows as a stream."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from django.conf import settings
from django.http import StreamingHttpResponse
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from platform_site.lib.api import NEGOTIATOR, NO_STORE, RENDERER
from platform_site.lib.errors import InvalidRequest, NotAcceptable
from sqlgateway.errors import IdempotencyNotSupported
from sqlgateway.formats import arrow_batches
from sqlgateway.provisioning.limits.request_limits import RequestLimits
from sqlgateway.transfer.exports import MEDIA_TYPES, Body, StreamFormat

AnswerFormat = Literal["json"] | StreamFormat


class Ndjson(BaseRenderer):
    """Declares the media type; the body is a stream."""

    media_type = "application/x-ndjson"
    format = "ndjson"


class Csv(BaseRenderer):
    """Declares the media type; the body is a stream."""

    media_type = "text/csv"
    format = "csv"


class Arrow(BaseRenderer):
    """Declares the media type; the body is a stream."""

    media_type = "application/vnd.apache.arrow.stream"
    format = "arrow"


FORMS: Final = (RENDERER, Ndjson(), Csv(), Arrow())


def accepted(request: Request) -> AnswerFormat:
    """Return the form that the request's Accept header asks for.

    Raises rest_framework.exceptions.NotAcceptable (406).
    """
    renderer, _ = NEGOTIATOR.select_renderer(request, list(FORMS))
    found: AnswerFormat = renderer.format
    return found


def chosen(given: Mapping[str, Any], accepted_format: AnswerFormat) -> AnswerFormat:
    """Return the form of an answer: the body's ``format`` outranks the Accept header.

    Raises NotAcceptable if it is Arrow and the extra is not installed.
    """
    form: AnswerFormat = given.get("format") or accepted_format
    if form == "arrow" and not arrow_batches.is_available():
        raise NotAcceptable("Arrow needs the platform's extra `arrow`, which is not installed.")
    return form


def longest_ms(given: Mapping[str, Any], form: AnswerFormat, limits: RequestLimits) -> int:
    """Return how long a request for this form may run: a stream as long as its client may read.

    limits: the organization's own, which are a stream's too.
    Raises InvalidRequest if it asks for more.
    """
    is_json = form == "json"
    longest: int = settings.SQL.timeout_ms if is_json else settings.SQL.export_timeout_s * 1000
    limit_ms = limits.timeout_ms(longest)
    if given.get("timeout_ms", 0) > limit_ms:
        raise InvalidRequest.for_field("timeout_ms", f"At most {limit_ms}.")
    return limit_ms


def check_streamable(given: Mapping[str, Any]) -> None:
    """Raise InvalidRequest naming what a stream cannot do."""
    if "queries" in given:
        raise InvalidRequest.for_field("queries", "A stream is the result of one statement.")
    if "max_rows" in given:
        raise InvalidRequest.for_field("max_rows", "A stream has no cap on rows: use LIMIT.")


def refuse_repetition(environ: Mapping[str, Any]) -> None:
    """Raise IdempotencyNotSupported if the request has a key: a body cannot be repeated."""
    if "HTTP_IDEMPOTENCY_KEY" in environ:
        raise IdempotencyNotSupported("Streams and imports are not repeated.")


def streamed(body: Body, form: StreamFormat) -> StreamingHttpResponse:
    """Return the response whose body is a stream."""
    # nginx would read as fast as PostgreSQL sends, into files.
    headers = NO_STORE | {"X-Accel-Buffering": "no"}
    return StreamingHttpResponse(body, content_type=MEDIA_TYPES[form], headers=headers)
