"""``/v1/sql/transactions``: transactions that stay open over several requests."""

from uuid import UUID

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema, extend_schema_serializer
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from common.api.views import NO_STORE, StrictSerializer
from common.errors import NotFound
from common.permissions import needs
from sqlgateway.api import negotiation
from sqlgateway.api.negotiation import STATEMENT_ERRORS, LimitedViewSet
from sqlgateway.api.serializers import ParamsField, SqlAnswerSerializer, StatementField
from sqlgateway.errors import (
    CopyNotSupported,
    EngineUnavailable,
    ResultNotText,
    SqlBusy,
    StatementOutOfOrder,
    TooManyQueries,
    TooManyTransactions,
    TransactionBusy,
    TransactionElsewhere,
    TransactionEnded,
    TransactionNotFound,
    TransactionOver,
)
from sqlgateway.models import InteractiveTransaction
from sqlgateway.run.requests import ISOLATIONS
from sqlgateway.transactions import operations

END_ERRORS = (
    *STATEMENT_ERRORS,
    TransactionNotFound,
    TransactionOver,
    TransactionBusy,
    TransactionElsewhere,
)


class BeginSerializer(StrictSerializer):
    """How the transaction is opened."""

    isolation = serializers.ChoiceField(choices=list(ISOLATIONS), required=False)
    read_only = serializers.BooleanField(  # type: ignore[assignment]  # a field of that name
        default=False, help_text="Run as the reader role, which cannot write."
    )


@extend_schema_serializer(many=False)
class TransactionSerializer(serializers.Serializer[InteractiveTransaction]):
    """An interactive transaction."""

    id = serializers.UUIDField()
    state = serializers.ChoiceField(choices=InteractiveTransaction.State.choices)
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(help_text="It is rolled back then.")


class StatementSerializer(StrictSerializer):
    """One statement of a transaction."""

    number = serializers.IntegerField(
        min_value=1,
        max_value=2**31 - 1,
        help_text="1 for the first statement, then one more each time. The last one again returns "
        "its answer once more and runs nothing.",
    )
    query = StatementField(help_text="One statement; parameters are $1, $2 and so on.")
    params = ParamsField(required=False, default=list)
    rows = serializers.ChoiceField(choices=["objects", "arrays"], default="objects")
    numeric = serializers.ChoiceField(choices=["string", "number"], default="string")
    json = serializers.ChoiceField(choices=["value", "string"], default="value")
    timeout_ms = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=settings.SQL.timeout_ms,
        error_messages={"max_value": "At most {max_value}."},
    )
    max_rows = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=settings.SQL.max_rows,
        error_messages={"max_value": "At most {max_value}."},
    )


class TransactionViewSet(LimitedViewSet):
    """Interactive transactions of the caller's own session."""

    tag = "SQL"
    access = {
        "create": needs("sql", "read"),
        "retrieve": needs("sql", "read"),
        "destroy": needs("sql", "read"),
        "statements": needs("sql", "read"),
        "commit": needs("sql", "read"),
    }
    errors = {
        "create": (NotFound, TooManyTransactions, TooManyQueries, SqlBusy, EngineUnavailable),
        "retrieve": (TransactionNotFound,),
        "destroy": END_ERRORS,
        "statements": (
            *END_ERRORS,
            TransactionEnded,
            StatementOutOfOrder,
            CopyNotSupported,
            ResultNotText,
        ),
        "commit": END_ERRORS,
    }
    serializer_class = TransactionSerializer
    request_serializers = {"create": BeginSerializer, "statements": StatementSerializer}
    response_serializers = {"statements": SqlAnswerSerializer}
    success_statuses = {"statements": status.HTTP_200_OK}
    lookup_url_kwarg = "transaction_id"

    @extend_schema(summary="Begin a transaction")
    def create(self, request: Request) -> Response:
        """Open a transaction that later requests use.

        It is rolled back after ten seconds without a statement, or when it is a minute old.
        """
        body = self.read()
        begun = operations.begin(
            self.principal, isolation=body.get("isolation"), read_only=body["read_only"]
        )
        # Load balancers learn the label of the machine from it.
        return self.respond(begun, headers={"Location": f"{request.path}/{begun.pk}"})

    @extend_schema(summary="Read a transaction")
    def retrieve(self, request: Request, transaction_id: str) -> Response:
        """Return the state of one of the session's transactions.

        That of a committed one for an hour, that of a rolled back one for five minutes.
        """
        return self.respond(operations.find(self.principal, _id(transaction_id)))

    @extend_schema(operation_id="sql_transactions_statement", summary="Run a statement in it")
    @action(detail=True, methods=["post"])
    def statements(self, request: Request, transaction_id: str) -> HttpResponse:
        """Run one statement. One that fails leaves the transaction to be rolled back."""
        body = self.read()
        negotiation.timeout_limit_ms(body, "json", self.limits)
        answer, is_repeated = operations.run(
            self.principal,
            _id(transaction_id),
            body.pop("number"),
            body,
            limits=self.limits,
            request_id=self.platform_request.request_id,
        )
        headers = NO_STORE | ({"Idempotent-Replayed": "true"} if is_repeated else {})
        return HttpResponse(answer, content_type="application/json", headers=headers)

    @extend_schema(summary="Commit a transaction")
    @action(detail=True, methods=["post"])
    def commit(self, request: Request, transaction_id: str) -> Response:
        """Commit. Sent again after a lost answer, it returns what happened."""
        return self.respond(operations.commit(self.principal, _id(transaction_id)))

    @extend_schema(summary="Roll a transaction back")
    def destroy(self, request: Request, transaction_id: str) -> Response:
        """Roll back; again it changes nothing."""
        operations.roll_back(self.principal, _id(transaction_id))
        return self.no_content()


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise TransactionNotFound from None
