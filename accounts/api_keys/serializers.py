"""API keys in JSON; times are in Unix seconds, as for all credentials."""

from django.utils import timezone
from rest_framework import serializers

from accounts.api_keys.api_keys import DEFAULT_DAYS, MAX_DAYS
from accounts.models import ApiKey
from accounts.serializers import UnixSecondsField
from common.api.views import StrictSerializer
from common.names import NameField
from common.permissions import ROLES, SCOPES

STATES = ["active", "expired", "revoked"]


class ApiKeySerializer(serializers.Serializer[ApiKey]):
    """An API key without its text. hint: the last characters before the checksum."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    hint = serializers.CharField()
    role = serializers.ChoiceField(choices=list(ROLES))
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=list(SCOPES)))
    state = serializers.SerializerMethodField()
    created_by = serializers.SerializerMethodField()
    created_at = UnixSecondsField()
    expires_at = UnixSecondsField()
    last_used_at = UnixSecondsField(allow_null=True, help_text="At most a minute behind.")
    last_used_address = serializers.CharField(help_text="Empty for a key that was never used.")

    def get_state(self, key: ApiKey) -> str:
        """Return one of `active`, `expired`, `revoked`."""
        return key.state(timezone.now())

    def get_created_by(self, key: ApiKey) -> str:
        """Return the address of the admin who made it; the key ends with that account."""
        return str(key.creator)


class NewApiKeySerializer(ApiKeySerializer):
    """A new API key. key: its text, shown in this answer only."""

    key = serializers.CharField(source="text")


class ApiKeyCreateSerializer(StrictSerializer):
    """The key to create in the caller's environment."""

    name = NameField(max_length=100, help_text="What uses it, such as `nightly import`.")
    role = serializers.ChoiceField(choices=list(ROLES))
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=list(SCOPES)),
        allow_empty=False,
        max_length=len(SCOPES),
        required=False,
        help_text="Each `write` includes its `read`. Left out: all that the role may have.",
    )
    expires_in_days = serializers.IntegerField(
        min_value=1, max_value=MAX_DAYS, required=False, default=DEFAULT_DAYS
    )


class ApiKeyFilterSerializer(StrictSerializer):
    """Filters of the list of keys."""

    state = serializers.ChoiceField(choices=STATES, required=False)
