"""Deletions and exports of organizations in JSON."""

from rest_framework import serializers

from common.api.views import StrictSerializer
from organizations.models_exports import OrganizationExport


class DeletionSerializer(StrictSerializer):
    """A request for deletion: the organization's name, as it is shown."""

    name = serializers.CharField(max_length=200)


class ExportSerializer(serializers.Serializer[OrganizationExport]):
    """An export. missing: what is not in its archive; failure: why there is no archive, or ''."""

    id = serializers.UUIDField()
    state = serializers.ChoiceField(OrganizationExport.State.choices)
    requested_by = serializers.CharField()
    requested_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)
    expires_at = serializers.DateTimeField(allow_null=True)
    size_bytes = serializers.IntegerField()
    failure = serializers.CharField()
    missing = serializers.ListField(child=serializers.CharField())
