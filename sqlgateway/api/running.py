"""``/v1/sql/running`` and ``DELETE /v1/sql/{request_id}``."""

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from common.api.viewsets import ListAction, PlatformViewSet
from common.permissions import needs
from sqlgateway.errors import RequestNotRunning
from sqlgateway.models import RunningSql
from sqlgateway.run import running_requests
from sqlgateway.run.requests import Caller


class RunningSqlSerializer(serializers.Serializer[RunningSql]):
    """One request that runs."""

    request_id = serializers.CharField()
    at = serializers.DateTimeField(help_text="When it began.")
    user_id = serializers.UUIDField(
        allow_null=True, help_text="An API key has its own; null for a development token."
    )
    user = serializers.CharField(source="actor")
    role = serializers.CharField()
    query = serializers.CharField(
        source="text", help_text="The beginning of the text, without parameters and secrets."
    )
    is_cancelled = serializers.BooleanField(help_text="True if its cancellation was requested.")


@extend_schema_view(
    list=extend_schema(
        operation_id="sql_running",
        summary="List running SQL requests",
        description="List requests that have run for a quarter of a second or longer: an admin "
        "sees the environment's, everyone else their own.",
    ),
)
class RunningSqlViewSet(ListAction):
    """SQL requests that run in the caller's environment."""

    tag = "SQL"
    access = {"list": needs("sql", "read")}
    serializer_class = RunningSqlSerializer

    def get_queryset(self) -> QuerySet[RunningSql]:
        """Return the running requests that the caller may see."""
        return running_requests.readable_by(Caller.of(self.principal))


class SqlCancelViewSet(PlatformViewSet):
    """Cancellation of SQL requests by their id."""

    tag = "SQL"
    access = {"destroy": needs("sql", "read")}
    errors = {"destroy": (RequestNotRunning,)}
    lookup_url_kwarg = "request_id"
    # The query ends a moment later; its own request reports the outcome.
    success_statuses = {"destroy": status.HTTP_202_ACCEPTED}

    @extend_schema(operation_id="cancel_sql", summary="Cancel a running SQL request")
    def destroy(self, request: Request, request_id: str) -> Response:
        """Cancel a running request of one's own; an admin any of the environment.

        The id is what the request sent as `X-Request-Id`, or the one in `/v1/sql/running`. The
        cancelled request answers 400 `query_cancelled`, unless it ended before.
        """
        running_requests.cancel(Caller.of(self.principal), request_id)
        return self.no_content()
