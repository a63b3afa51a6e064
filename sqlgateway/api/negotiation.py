"""The format of an answer, JSON or a stream of rows, and the limits of an organization."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from django.conf import settings
from django.http import StreamingHttpResponse
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from common.api.views import NEGOTIATOR, NO_STORE, RENDERER
from common.api.viewsets import PlatformViewSet
from common.errors import InvalidRequest, NotAcceptable, NotFound
from common.principals import Principal
from environments.errors import QuotaExceeded
from sqlgateway.clusters.organization_limits import Quota
from sqlgateway.databases import provisioning
from sqlgateway.errors import (
    CloneFailed,
    DatabaseNotReady,
    EngineFault,
    EngineUnavailable,
    IdempotencyNotSupported,
    OutcomeUnknown,
    QueryCancelled,
    QueryTimeout,
    ResultTooWide,
    SqlBusy,
    SqlConflict,
    SqlForbidden,
    SqlRefused,
    SqlTooLarge,
    SqlUnavailable,
    TooManyQueries,
)
from sqlgateway.formats import arrow_batches
from sqlgateway.transfer.exports import MEDIA_TYPES, Body, StreamFormat

# What any statement in an environment's database can meet.
STATEMENT_ERRORS: Final = (
    NotFound,
    QueryCancelled,
    QueryTimeout,
    SqlRefused,
    SqlForbidden,
    SqlConflict,
    ResultTooWide,
    SqlTooLarge,
    TooManyQueries,
    EngineFault,
    OutcomeUnknown,
    SqlBusy,
    SqlUnavailable,
    EngineUnavailable,
    DatabaseNotReady,
    CloneFailed,
    QuotaExceeded,
)
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


RENDERERS: Final = (RENDERER, Ndjson(), Csv(), Arrow())


def accepted(request: Request) -> AnswerFormat:
    """Return the format that the request's Accept header selects.

    Raises rest_framework.exceptions.NotAcceptable (406).
    """
    renderer, _ = NEGOTIATOR.select_renderer(request, list(RENDERERS))
    found: AnswerFormat = renderer.format
    return found


def chosen(given: Mapping[str, Any], accepted_format: AnswerFormat) -> AnswerFormat:
    """Return the format of an answer: the body's ``format`` overrides the Accept header.

    Raises NotAcceptable for Arrow if the extra is not installed.
    """
    form: AnswerFormat = given.get("format") or accepted_format
    if form == "arrow" and not arrow_batches.is_available():
        raise NotAcceptable("Arrow needs the platform's extra `arrow`, which is not installed.")
    return form


def timeout_limit_ms(given: Mapping[str, Any], form: AnswerFormat, limits: Quota) -> int:
    """Return the time limit of a request for this format; that of a stream includes reading it.

    limits: the organization's own, which also apply to streams.
    Raises InvalidRequest if the request has a longer timeout.
    """
    is_json = form == "json"
    setting_ms: int = settings.SQL.timeout_ms if is_json else settings.SQL.export_timeout_s * 1000
    limit_ms = limits.within(Quota.timeout_ms, setting_ms)
    if given.get("timeout_ms", 0) > limit_ms:
        raise InvalidRequest.for_field("timeout_ms", f"At most {limit_ms}.")
    return limit_ms


def check_streamable(given: Mapping[str, Any], form: StreamFormat) -> None:
    """Raise InvalidRequest for options that a stream of this format does not support."""
    if "queries" in given:
        raise InvalidRequest.for_field("queries", "A stream is the result of one statement.")
    if "max_rows" in given:
        raise InvalidRequest.for_field("max_rows", "A stream has no cap on rows: use LIMIT.")
    if form == "ndjson":
        return
    for name in ("rows", "numeric", "json", "values"):
        if name in given:
            message = "For JSON and NDJSON: CSV and Arrow have one way to write rows and values."
            raise InvalidRequest.for_field(name, message)


def refuse_repetition(environ: Mapping[str, Any]) -> None:
    """Raise IdempotencyNotSupported if the request has a key: streams are not stored."""
    if "HTTP_IDEMPOTENCY_KEY" in environ:
        raise IdempotencyNotSupported("Streams and imports are not repeated.")


def streamed(body: Body, form: StreamFormat) -> StreamingHttpResponse:
    """Return the response of a stream."""
    # Without it, nginx would read as fast as PostgreSQL sends, and buffer in files.
    headers = NO_STORE | {"X-Accel-Buffering": "no"}
    return StreamingHttpResponse(body, content_type=MEDIA_TYPES[form], headers=headers)


class LimitedViewSet(PlatformViewSet):
    """The base of SQL's viewsets. limits: the organization's, in actions that read a body."""

    limits = Quota()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Read the limits after the permission check, and before the body."""
        super().initial(request, *args, **kwargs)
        if self.action in self.request_serializers:
            self.read_limits(self.principal)

    def read_limits(self, principal: Principal) -> None:
        """Set the limits, including the limit of the body."""
        self.limits = provisioning.limits_of(principal.scope)
        self.body_limit_bytes = self.limits.within(Quota.body_bytes, self.body_limit_bytes)
