"""``/v1/sql``."""

from typing import Any, Final, cast

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from common import problems
from common.api.bodies import StrictJsonParser
from common.api.views import JSON_ACCEPTED, NO_STORE, RENDERER
from common.permissions import authorize, needs
from common.principals import PlatformRequest, Principal
from sqlgateway.api import negotiation
from sqlgateway.api.negotiation import STATEMENT_ERRORS, AnswerFormat, LimitedViewSet
from sqlgateway.api.serializers import SqlAnswerSerializer, SqlSerializer, is_plain
from sqlgateway.errors import (
    CopyNotSupported,
    IdempotencyKeyInUse,
    IdempotencyKeyReused,
    IdempotencyNotSupported,
    ResultNotText,
    TransactionEnded,
    TransactionNotCommitted,
)
from sqlgateway.run import gateway
from sqlgateway.run.idempotency import HEADER, Key
from sqlgateway.run.requests import Caller, SqlRequest, parsed
from sqlgateway.transfer.exports import Export

PARSER: Final = StrictJsonParser()
REPLAYED: Final = "Idempotent-Replayed"


class SqlViewSet(LimitedViewSet):
    """SQL in the database of the caller's environment."""

    tag = "SQL"
    access = {"create": needs("sql", "read")}
    errors = {
        "create": (
            *STATEMENT_ERRORS,
            CopyNotSupported,
            ResultNotText,
            IdempotencyNotSupported,
            IdempotencyKeyInUse,
            IdempotencyKeyReused,
            TransactionEnded,
            TransactionNotCommitted,
        ),
    }
    request_serializers = {"create": SqlSerializer}
    serializer_class = SqlAnswerSerializer
    # Not 201: nothing is created, the answer is the statements' result.
    success_statuses = {"create": status.HTTP_200_OK}
    body_limit_bytes = settings.SQL.body_limit_bytes
    accepted_format: AnswerFormat = "json"

    @extend_schema(
        operation_id="sql",
        summary="Run SQL",
        responses={
            200: SqlAnswerSerializer,
            (200, "application/x-ndjson"): str,
            (200, "text/csv"): str,
            (200, "application/vnd.apache.arrow.stream"): OpenApiTypes.BINARY,
        },
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
        negotiation.check_streamable(given, form)
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
