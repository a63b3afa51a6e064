"""Webhooks in JSON."""

from typing import Any

from rest_framework import serializers

from common.api.views import StrictSerializer
from common.egress import URL_CHARS
from common.names import NameField
from outbox.models import WebhookDelivery, WebhookEndpoint
from outbox.webhooks.delivery_queue import message_id_of
from outbox.webhooks.events import EVENTS


class EventsField(serializers.ListField):
    """Events without duplicates."""

    def __init__(self, **options: Any) -> None:
        child = serializers.ChoiceField(choices=list(EVENTS))
        super().__init__(child=child, allow_empty=False, max_length=2 * len(EVENTS), **options)


class WebhookSerializer(serializers.Serializer[WebhookEndpoint]):
    """An endpoint without its secret."""

    id = serializers.UUIDField()
    url = serializers.CharField()
    description = serializers.CharField()
    events = serializers.ListField(child=serializers.CharField())
    state = serializers.ChoiceField(choices=WebhookEndpoint.State.values)
    disabled_reason = serializers.CharField(
        help_text="`by_admin`, `failing` or `gone`; empty while it is enabled."
    )
    failing_since = serializers.DateTimeField(allow_null=True)
    previous_secret_ends_at = serializers.DateTimeField(allow_null=True)
    created_by = serializers.CharField()
    created_at = serializers.DateTimeField()


class NewWebhookSerializer(WebhookSerializer):
    """An endpoint with its secret, which no later response contains."""

    secret = serializers.CharField(source="text")


class WebhookCreateSerializer(StrictSerializer):
    """The endpoint to add."""

    url = serializers.CharField(max_length=URL_CHARS)
    events = EventsField()
    description = NameField(max_length=200, required=False, default="", allow_blank=True)


class WebhookUpdateSerializer(StrictSerializer):
    """Changes of an endpoint; omitted fields stay unchanged."""

    url = serializers.CharField(max_length=URL_CHARS, required=False)
    events = EventsField(required=False)
    description = NameField(max_length=200, required=False, allow_blank=True)
    state = serializers.ChoiceField(choices=WebhookEndpoint.State.values, required=False)


class WebhookRotateSerializer(StrictSerializer):
    """How a secret is replaced."""

    keep_previous = serializers.BooleanField(
        required=False,
        default=True,
        help_text="The previous secret also signs for 24 hours; false ends it immediately.",
    )


class WebhookAttemptSerializer(serializers.Serializer[Any]):
    """One attempt. status: null without a response; error: why it failed, or empty."""

    at = serializers.DateTimeField()
    status = serializers.IntegerField(allow_null=True)
    error = serializers.CharField()
    elapsed_ms = serializers.IntegerField()


class WebhookDeliverySerializer(serializers.Serializer[WebhookDelivery]):
    """One event for an endpoint: statuses and times, without the body."""

    id = serializers.UUIDField()
    message_id = serializers.SerializerMethodField()
    event = serializers.CharField()
    state = serializers.ChoiceField(choices=WebhookDelivery.State.values)
    attempts = serializers.IntegerField()
    last_status = serializers.IntegerField(allow_null=True)
    last_error = serializers.CharField(source="error")
    log = WebhookAttemptSerializer(many=True, help_text="The latest attempts, oldest first.")
    created_at = serializers.DateTimeField()
    next_attempt_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)

    def get_message_id(self, delivery: WebhookDelivery) -> str:
        """Return the header `webhook-id`, the same at each attempt."""
        return message_id_of(delivery)


class WebhookDeliveryFilterSerializer(StrictSerializer):
    """Filters of the list of deliveries, combined with AND."""

    state = serializers.ChoiceField(choices=WebhookDelivery.State.values, required=False)
    event = serializers.CharField(max_length=40, required=False)
