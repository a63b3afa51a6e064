"""``/v1/sql/history`` and its sums by hour, ``/v1/sql/activity``."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from django.db.models import Avg, Count, Max, Q, QuerySet
from django.db.models.functions import TruncHour
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_serializer, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from common.api.views import StrictSerializer
from common.api.viewsets import ListAction, PlatformViewSet
from common.permissions import needs
from common.scoping import within
from sqlgateway.models import SqlRecord
from sqlgateway.run import history
from sqlgateway.run.requests import Caller

ACTIVITY_HOURS: Final = 24


class SqlRecordSerializer(serializers.Serializer[SqlRecord]):
    """One request of the history."""

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
    is_cut = serializers.BooleanField(
        help_text="True if the text may not be all that ran: do not run it unread."
    )
    statements = serializers.IntegerField(help_text="Items of `queries`, else 1.")
    outcome = serializers.CharField(help_text="`success`, or the code of the error.")
    sqlstate = serializers.CharField(allow_blank=True)
    row_count = serializers.IntegerField(
        allow_null=True, help_text="Of the last statement; null after an error."
    )
    elapsed_ms = serializers.FloatField()
    explain = serializers.ChoiceField(
        ["plan", "analyze"],
        allow_blank=True,
        help_text="`plan`: nothing ran; `analyze`: it ran and was measured; empty for a usual run.",
    )


class HistoryFilterSerializer(StrictSerializer):
    """Filters of the history."""

    user = serializers.UUIDField(required=False, help_text="A user's id.")
    outcome = serializers.CharField(
        max_length=64, required=False, help_text="`success`, `error` for any, or an error's code."
    )
    sqlstate = serializers.CharField(max_length=5, required=False)
    request_id = serializers.CharField(max_length=64, required=False)
    query = serializers.CharField(
        max_length=200, required=False, help_text="What the text contains, in any case."
    )
    since = serializers.DateTimeField(required=False, help_text="From then on.")
    until = serializers.DateTimeField(required=False, help_text="Before then.")


class SqlHourSerializer(serializers.Serializer[Any]):
    """The requests that began in one hour; hours without any are left out."""

    hour = serializers.DateTimeField()
    requests = serializers.IntegerField()
    failures = serializers.IntegerField()
    average_ms = serializers.FloatField()
    slowest_ms = serializers.FloatField()


@extend_schema_serializer(many=False)
class ActivitySerializer(serializers.Serializer[Any]):
    """SQL requests of the last day by hour, as far as the history goes back."""

    since = serializers.DateTimeField()
    requests = serializers.IntegerField(help_text="The sum.")
    failures = serializers.IntegerField(help_text="The sum.")
    hours = SqlHourSerializer(many=True)


@extend_schema_view(
    list=extend_schema(
        operation_id="sql_history",
        summary="Read the history of SQL requests",
        description="List requests that ran, newest first: an admin sees the environment's, "
        "everyone else their own.",
    ),
)
class SqlHistoryViewSet(ListAction):
    """The history of SQL requests in the caller's environment."""

    tag = "SQL"
    access = {"list": needs("sql", "read")}
    serializer_class = SqlRecordSerializer
    query_serializers = {"list": HistoryFilterSerializer}

    def get_queryset(self) -> QuerySet[SqlRecord]:
        """Return the requests that the caller may read, filtered."""
        return matching(readable_by(Caller.of(self.principal)), self.read_query())


class ActivityViewSet(PlatformViewSet):
    """The number of recent SQL requests in the caller's environment."""

    tag = "SQL"
    access = {"list": needs("sql", "read")}
    serializer_class = ActivitySerializer
    pagination_class = None

    @extend_schema(operation_id="sql_activity", summary="Read the last day's activity")
    def list(self, request: Request) -> Response:
        """Count the last 24 hours' requests: an admin the environment's, others their own."""
        hour = timezone.now().replace(minute=0, second=0, microsecond=0)
        since = hour - timedelta(hours=ACTIVITY_HOURS - 1)
        rows = readable_by(Caller.of(self.principal)).filter(pk__gte=history.first_id(since))
        hours = list(
            rows.filter(at__gte=since)
            .annotate(hour=TruncHour("at"))
            .values("hour")
            .annotate(
                requests=Count("pk"),
                failures=Count("pk", filter=~Q(outcome="success")),
                average_ms=Avg("elapsed_ms"),
                slowest_ms=Max("elapsed_ms"),
            )
            .order_by("hour")
        )
        sums = {name: sum(row[name] for row in hours) for name in ("requests", "failures")}
        return self.respond({"since": since, "hours": hours} | sums)


def readable_by(caller: Caller) -> QuerySet[SqlRecord]:
    """Return the requests that a caller may read: its own, or as an admin all."""
    with within(caller.scope):
        rows: QuerySet[SqlRecord] = SqlRecord.objects.all()
    return rows if caller.sees_all else rows.filter(user_id=caller.user_id)


def matching(rows: QuerySet[SqlRecord], wanted: Mapping[str, Any]) -> QuerySet[SqlRecord]:
    """Filter requests. wanted: values by the names of HistoryFilterSerializer."""
    lookups = {"user": "user_id", "query": "text__icontains", "since": "at__gte", "until": "at__lt"}
    given = {lookups.get(name, name): value for name, value in wanted.items()}
    if given.get("outcome") == "error":
        del given["outcome"]
        rows = rows.exclude(outcome="success")
    return rows.filter(**given)
