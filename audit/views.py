"""``/v1/audit``."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers

from audit import descriptions, trail
from audit.models import AuditEvent
from audit.tags import known
from common.api.views import StrictSerializer
from common.api.viewsets import ListAction
from common.permissions import needs


class AuditEventSerializer(serializers.Serializer[AuditEvent]):
    """An audit event. tag: ``source:subject:action``; outcome: ``success``, or a reason."""

    id = serializers.UUIDField()
    at = serializers.DateTimeField()
    tag = serializers.CharField()
    summary = serializers.SerializerMethodField(help_text="What the tag stands for.")
    sentence = serializers.SerializerMethodField(help_text="Who did what, to whom.")
    outcome = serializers.CharField()
    environment = serializers.CharField(source="environment_id")
    actor_id = serializers.UUIDField(allow_null=True)
    actor = serializers.CharField()
    affected = serializers.SerializerMethodField(
        help_text="The address of the person whom it affects, or the person's id; '' for nobody."
    )
    address = serializers.CharField()
    agent = serializers.CharField()
    request_id = serializers.CharField()
    data = serializers.JSONField()  # type: ignore[assignment]  # DRF takes it for a field

    def get_summary(self, event: AuditEvent) -> str:
        """Return the sentence of the event's tag; '' for a tag that no longer exists."""
        tag = known().get(event.tag)
        return tag.sentence if tag else ""

    def get_sentence(self, event: AuditEvent) -> str:
        """Return it in plain English; '' for a tag that no longer exists."""
        return descriptions.sentence_of(event)

    def get_affected(self, event: AuditEvent) -> str:
        """Return the person, who was of the same organization."""
        return descriptions.affected_of(event)


class AuditFilterSerializer(StrictSerializer):
    """Filters, combined with AND. Texts match in any case."""

    search = serializers.CharField(
        max_length=200,
        required=False,
        help_text="Words that the sentence, the actor, the data or the tag contain, or with which "
        "the network address begins; or a request id.",
    )
    tag = serializers.CharField(
        max_length=100,
        required=False,
        help_text="A whole tag or its first parts, such as `api:session`.",
    )
    outcome = serializers.CharField(max_length=20, required=False)
    environment = serializers.CharField(max_length=63, required=False)
    actor = serializers.CharField(
        max_length=254,
        required=False,
        help_text="Who did it: a part of the address or name, or a user's id.",
    )
    affected = serializers.CharField(
        max_length=254,
        required=False,
        help_text="Whom it affects: a part of the address, or a user's id.",
    )
    request_id = serializers.CharField(max_length=64, required=False)
    since = serializers.DateTimeField(required=False, help_text="From then on.")
    until = serializers.DateTimeField(required=False, help_text="Before then.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse a span in which nothing can be."""
        if "since" in attrs and "until" in attrs and attrs["until"] <= attrs["since"]:
            raise serializers.ValidationError({"until": "The end is not after the beginning."})
        return attrs


@extend_schema_view(
    list=extend_schema(
        summary="Read the audit trail",
        description="List what happened in the organization, in all of its environments, "
        "newest first.",
    ),
)
class AuditEventViewSet(ListAction):
    """The audit trail of the caller's organization."""

    tag = "Audit trail"
    access = {"list": needs("audit", "read")}
    serializer_class = AuditEventSerializer
    query_serializers = {"list": AuditFilterSerializer}

    def get_queryset(self) -> QuerySet[AuditEvent]:
        """Return the organization's events that match the filters."""
        events = trail.of_organization(self.principal.organization_id)
        return trail.matching(events, self.read_query())
