"""``/v1/sql/usage``."""

from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from common.api.views import NO_STORE
from common.api.viewsets import PlatformViewSet
from common.permissions import needs
from environments.models import Environment
from sqlgateway.clusters.organization_limits import Quota, quota_of
from sqlgateway.models import Database


class DiskSerializer(serializers.Serializer[Any]):
    """The environment's database on disk, with indexes and what VACUUM has yet to free."""

    used_bytes = serializers.IntegerField(
        allow_null=True, help_text="Null before the first measurement; one is made each minute."
    )
    limit_bytes = serializers.IntegerField()
    exceeded = serializers.BooleanField(
        help_text="While true, only DELETE, TRUNCATE, DROP and reading work."
    )
    measured_at = serializers.DateTimeField(allow_null=True)


class EnvironmentsSerializer(serializers.Serializer[Any]):
    """The organization's environments."""

    used = serializers.IntegerField()
    limit = serializers.IntegerField()


class ConnectionsSerializer(serializers.Serializer[Any]):
    """Connections to the environment's database, which the gateway opens."""

    limit = serializers.IntegerField()
    limit_per_role = serializers.IntegerField()


class StatementsSerializer(serializers.Serializer[Any]):
    """Limits of statements. Each web process counts its own concurrent statements."""

    running_limit_per_environment = serializers.IntegerField()
    running_limit_per_organization = serializers.IntegerField()
    timeout_ms = serializers.IntegerField()
    stream_timeout_ms = serializers.IntegerField(
        help_text="Of a streamed result, until its client has read it."
    )
    import_timeout_ms = serializers.IntegerField(help_text="Of an import, its upload included.")
    max_rows = serializers.IntegerField(help_text="Of one result in JSON.")
    max_bytes = serializers.IntegerField(help_text="Of all rows of one JSON answer.")
    body_limit_bytes = serializers.IntegerField(help_text="Of the body of `POST /v1/sql`.")
    import_limit_bytes = serializers.IntegerField(help_text="Of an imported body, unpacked.")


@extend_schema_serializer(many=False)
class UsageSerializer(serializers.Serializer[Any]):
    """What is used, and the limits."""

    disk = DiskSerializer()
    environments = EnvironmentsSerializer()
    connections = ConnectionsSerializer()
    statements = StatementsSerializer()


class SqlUsageViewSet(PlatformViewSet):
    """What the caller's environment and organization use."""

    tag = "SQL"
    access = {"list": needs("sql", "read")}
    serializer_class = UsageSerializer
    pagination_class = None

    @extend_schema(operation_id="sql_usage", summary="Read usage and limits")
    def list(self, request: Request) -> Response:
        """Return what the environment uses of its limits, and the organization of its own."""
        scope = self.principal.scope
        quota = quota_of(scope.organization_id)
        database: Database | None = Database.objects.first()
        environments = Environment.objects.filter(organization_id=scope.organization_id)
        limits = settings.SQL
        usage = {
            "disk": {
                "used_bytes": database.size_bytes if database else None,
                "limit_bytes": quota.disk_bytes,
                "exceeded": database.is_over_quota if database else False,
                "measured_at": database.measured_at if database else None,
            },
            "environments": {
                "used": environments.filter(deleted_at=None).count(),
                "limit": quota.environments,
            },
            "connections": {
                "limit": limits.database_connections,
                "limit_per_role": limits.role_connections,
            },
            "statements": {
                "running_limit_per_environment": quota.own.get(
                    "statements", limits.running_per_environment
                ),
                "running_limit_per_organization": quota.statements,
                **_of_requests(quota),
            },
        }
        return self.respond(usage, headers=NO_STORE)


def _of_requests(quota: Quota) -> dict[str, int]:
    return {
        "timeout_ms": quota.timeout_ms,
        "stream_timeout_ms": quota.within(Quota.timeout_ms, settings.SQL.export_timeout_s * 1000),
        "import_timeout_ms": quota.within(Quota.timeout_ms, settings.SQL.import_timeout_s * 1000),
        "max_rows": quota.max_rows,
        "max_bytes": quota.max_bytes,
        "body_limit_bytes": quota.body_bytes,
        "import_limit_bytes": quota.import_bytes,
    }
