"""The audit trail in JSON."""

from rest_framework import serializers

from audit.models import AuditEvent
from audit.tags import sentences
from common.api.views import StrictSerializer


class AuditEventSerializer(serializers.Serializer[AuditEvent]):
    """An audit event. tag: ``source:subject:action``; outcome: ``success``, or a reason."""

    id = serializers.UUIDField()
    at = serializers.DateTimeField()
    tag = serializers.CharField()
    summary = serializers.SerializerMethodField(help_text="What the tag stands for.")
    outcome = serializers.CharField()
    environment = serializers.CharField(source="environment_id")
    actor_id = serializers.UUIDField(allow_null=True)
    actor = serializers.CharField()
    address = serializers.CharField()
    agent = serializers.CharField()
    request_id = serializers.CharField()
    data = serializers.JSONField()  # type: ignore[assignment]  # DRF takes it for a field

    def get_summary(self, event: AuditEvent) -> str:
        """Return the sentence of the event's tag; '' for a tag that no longer exists."""
        return sentences().get(event.tag, "")


class AuditFilterSerializer(StrictSerializer):
    """Filters. tag: a whole tag or its first parts, such as ``api:session``."""

    tag = serializers.CharField(max_length=100, required=False)
    outcome = serializers.CharField(max_length=20, required=False)
    environment = serializers.CharField(max_length=63, required=False)
    actor = serializers.CharField(
        max_length=254, required=False, help_text="An address or a user's id."
    )
    request_id = serializers.CharField(max_length=64, required=False)
    since = serializers.DateTimeField(required=False, help_text="From then on.")
    until = serializers.DateTimeField(required=False, help_text="Before then.")
