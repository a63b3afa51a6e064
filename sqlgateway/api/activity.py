"""``/v1/sql/activity``."""

from datetime import timedelta
from typing import Any, Final

from django.db.models import Avg, Count, Max, Q
from django.db.models.functions import TruncHour
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from common.api.viewsets import PlatformViewSet
from common.permissions import needs
from sqlgateway.api.history import readable_by
from sqlgateway.run import retention
from sqlgateway.run.requests import Caller

HOURS: Final = 24


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


class ActivityViewSet(PlatformViewSet):
    """The number of recent SQL requests in the caller's environment."""

    access = {"list": needs("sql", "read")}
    serializer_class = ActivitySerializer
    pagination_class = None

    @extend_schema(operation_id="sql_activity", summary="Read the last day's activity")
    def list(self, request: Request) -> Response:
        """Count the last 24 hours' requests: an admin the environment's, others their own."""
        hour = timezone.now().replace(minute=0, second=0, microsecond=0)
        since = hour - timedelta(hours=HOURS - 1)
        rows = readable_by(Caller.of(self.principal)).filter(pk__gte=retention.first_id(since))
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
