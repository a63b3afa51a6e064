"""``/v1/sql/history``."""

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers

from common.api.views import StrictSerializer
from common.api.viewsets import ListAction
from common.permissions import needs
from sqlgateway.models import SqlRecord
from sqlgateway.run.requests import Caller


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


def readable_by(caller: Caller) -> QuerySet[SqlRecord]:
    """Return the requests that a caller may read: its own, or as an admin all."""
    rows: QuerySet[SqlRecord] = SqlRecord.scoped.within(caller.scope)
    return rows if caller.sees_all else rows.filter(user_id=caller.user_id)


def matching(rows: QuerySet[SqlRecord], wanted: Mapping[str, Any]) -> QuerySet[SqlRecord]:
    """Filter requests. wanted: values by the names of HistoryFilterSerializer."""
    lookups = {"user": "user_id", "query": "text__icontains", "since": "at__gte", "until": "at__lt"}
    given = {lookups.get(name, name): value for name, value in wanted.items()}
    if given.get("outcome") == "error":
        del given["outcome"]
        rows = rows.exclude(outcome="success")
    return rows.filter(**given)


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

    access = {"list": needs("sql", "read")}
    serializer_class = SqlRecordSerializer
    query_serializers = {"list": HistoryFilterSerializer}

    def get_queryset(self) -> QuerySet[SqlRecord]:
        """Return the requests that the caller may read, filtered."""
        return matching(readable_by(Caller.of(self.principal)), self.read_query())
