"""``/v1/sql``."""

from typing import Any, Final, cast

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from common import problems
from common.api.bodies import StrictJsonParser
from common.api.views import JSON_ACCEPTED, NO_STORE, RENDERER
from common.errors import InvalidRequest
from common.permissions import authorize, needs
from common.principals import PlatformRequest, Principal
from sqlgateway.api import negotiation
from sqlgateway.api.limited_views import LimitedViewSet
from sqlgateway.api.negotiation import AnswerFormat
from sqlgateway.api.serializers import SqlAnswerSerializer, SqlSerializer, is_plain
from sqlgateway.clusters.request_limits import RequestLimits
from sqlgateway.formats.results import RowFormat
from sqlgateway.run import gateway
from sqlgateway.run.parameters import encode_params
from sqlgateway.run.records import HEADER, Key
from sqlgateway.run.requests import Caller, SqlRequest, SqlText, explained
from sqlgateway.transfer.exports import Export

PARSER: Final = StrictJsonParser()
REPLAYED: Final = "Idempotent-Replayed"


class SqlViewSet(LimitedViewSet):
    """SQL in the database of the caller's environment."""

    access = {"create": needs("sql", "read")}
    request_serializers = {"create": SqlSerializer}
    serializer_class = SqlAnswerSerializer
    # Not 201: nothing is created, the answer is the statements' result.
    success_statuses = {"create": status.HTTP_200_OK}
    body_limit_bytes = settings.SQL.body_limit_bytes
    accepted_format: AnswerFormat = "json"

    @extend_schema(
        operation_id="sql",
        summary="Run SQL",
        parameters=[
            OpenApiParameter(
                HEADER,
                str,
                OpenApiParameter.HEADER,
                description="1 to 255 visible ASCII characters: a write with this key happens "
                "once. The same request again gets the kept answer, with "
                "`Idempotent-Replayed: true`.",
            )
        ],
    )
    def create(self, request: Request) -> HttpResponseBase:
        """Run statements in the environment's own PostgreSQL database.

        What they may do is up to the caller's role: an admin owns what it creates, an operator
        reads and writes rows, a reader reads. With `Accept: application/x-ndjson` or `text/csv`,
        or `format`, the rows of one statement are streamed, without a cap.
        """
        return self._answer(self.platform_request, self.principal, request.data)

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Handle usual requests without DRF, which would take longer than PostgreSQL.

        The same function authorizes requests on both paths.
        """
        given = cast(PlatformRequest, request)
        principal = given.principal
        if principal is None or not _is_usual(given):
            return super().dispatch(request, *args, **kwargs)
        try:
            authorize(given, self.access_for(given.method or ""), principal)
            self.read_limits(principal)
            body = PARSER.parse(request, parser_context={"view": self, "request": request})
            return self._answer(given, principal, body)
        except Exception as exc:  # an exception without a problem document is raised again
            error = problems.translate(exc)
            if error is None:
                raise
            return problems.respond(request, error)

    def perform_content_negotiation(
        self, request: Request, force: bool = False
    ) -> tuple[BaseRenderer, str]:
        """Choose the format of the answer; problem documents are always JSON."""
        if not force and self.accept_header not in JSON_ACCEPTED:
            self.accepted_format = negotiation.accepted(request)
        return RENDERER, RENDERER.media_type

    def _answer(
        self, request: PlatformRequest, principal: Principal, body: dict[str, Any]
    ) -> HttpResponseBase:
        given = body if is_plain(body) else self.validated(SqlSerializer, body)
        form = negotiation.chosen(given, self.accepted_format)
        limit_ms = negotiation.timeout_limit_ms(given, form, self.limits)
        wanted = parsed(given, limits=self.limits, limit_ms=limit_ms)
        caller = Caller.of(principal)
        if form == "json":
            return _collected(request, caller, wanted, body)
        negotiation.check_streamable(given)
        negotiation.refuse_repetition(request.META)
        export = Export(caller, wanted, form, request_id=request.request_id)
        return negotiation.streamed(export.open(request.META), form)


def _collected(
    request: PlatformRequest, caller: Caller, wanted: SqlRequest, body: dict[str, Any]
) -> HttpResponse:
    headers = dict(NO_STORE)
    key_text = request.META.get("HTTP_IDEMPOTENCY_KEY")
    key = None if key_text is None else Key.of(caller, key_text, body)
    # A reader cannot write a record, and its request can run again because it changes nothing.
    if key is None or wanted.read_only or caller.role == "reader":
        answer = gateway.answer(caller, wanted, request_id=request.request_id)
    else:
        answer, is_replayed = gateway.answer_once(
            caller, wanted, key, request_id=request.request_id
        )
        if is_replayed:
            headers[REPLAYED] = "true"
    return HttpResponse(answer, content_type="application/json", headers=headers)


def _is_usual(request: PlatformRequest) -> bool:
    meta = request.META
    return (
        request.method == "POST"
        and meta.get("CONTENT_TYPE") == PARSER.media_type
        and meta.get("HTTP_ACCEPT", "*/*") in JSON_ACCEPTED
    )


def parsed(
    given: dict[str, Any], *, limits: RequestLimits, limit_ms: int | None = None
) -> SqlRequest:
    """Return the request of a validated body.

    limits: the organization's own.
    limit_ms: the default and the maximum of the timeout; None for that of an answer in JSON.
    Raises InvalidRequest with the name of a field that exceeds the limits, or cannot be sent to
    PostgreSQL.
    """
    is_batch = "queries" in given
    limit_ms = limit_ms or limits.timeout_ms(settings.SQL.timeout_ms)
    items = given["queries"] if is_batch else [given]
    _check_rows(given, "", limits)
    texts = []
    for index, item in enumerate(items):
        path = f"queries.{index}." if is_batch else ""
        _check_rows(item, path, limits)
        # An item's own options override the request's.
        texts.append(_sql_text({**given, **item}, path, limits))
    return SqlRequest(
        texts=tuple(texts),
        is_batch=is_batch,
        read_only=bool(given.get("read_only")),
        isolation=given.get("isolation"),
        timeout_ms=min(given.get("timeout_ms") or limit_ms, limit_ms),
        max_bytes=limits.max_bytes,
    )


def _check_rows(options: dict[str, Any], path: str, limits: RequestLimits) -> None:
    """Refuse a number of rows above the limit: the result would be truncated at the limit."""
    if options.get("max_rows", 0) > limits.max_rows:
        raise InvalidRequest.for_field(f"{path}max_rows", f"At most {limits.max_rows}.")


def _sql_text(item: dict[str, Any], path: str, limits: RequestLimits) -> SqlText:
    text = item["query"]
    # libpq reads a text up to its first NUL, and would silently ignore the rest.
    if "\0" in text:
        raise InvalidRequest.for_field(f"{path}query", "SQL holds no NUL character.", code="nul")
    params = item.get("params")
    encoded = None if params is None else encode_params(params, field=f"{path}params")
    how = item.get("explain")
    form = RowFormat(
        max_rows=item.get("max_rows") or limits.max_rows,
        rows_as=item.get("rows", "objects"),
        numeric=item.get("numeric", "string"),
        # A plan is JSON in the answer, however the statement's own values were asked for.
        json="value" if how else item.get("json", "value"),
    )
    if not how:
        return SqlText(text, encoded, form)
    text, offset = explained(text, how)
    # By the extended protocol: with the simple one a second statement would run without EXPLAIN.
    return SqlText(text, encoded or [], form, offset, is_explained=True)
