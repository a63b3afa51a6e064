"""The second factor in JSON, with the published field names."""

from typing import Any, Final

from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework import serializers

from accounts.serializers import (
    EnrolmentRequiredSerializer,
    FinishedSignInSerializer,
    LoginAnswerSerializer,
)
from environments.models import MFA_METHODS
from platform_site.lib.api import StrictSerializer


class EnrolledSerializer(FinishedSignInSerializer):
    """The factor is active; with the result of the sign-in that waited for it, if one did."""

    success = serializers.BooleanField()


class StatusSerializer(serializers.Serializer[Any]):
    """What the caller has."""

    enabled = serializers.BooleanField()
    required = serializers.BooleanField()  # type: ignore[assignment]  # published name
    enabled_methods = serializers.ListField(child=serializers.CharField())
    default_method = serializers.CharField(allow_null=True)
    phone_verified = serializers.BooleanField()
    backup_codes_remaining = serializers.IntegerField()


class ChallengeSerializer(serializers.Serializer[Any]):
    """A question."""

    challenge_id = serializers.CharField()
    method = serializers.CharField()
    methods = serializers.ListField(child=serializers.CharField())
    expires_at = serializers.IntegerField()
    attempts_left = serializers.IntegerField()
    delivery_hint = serializers.CharField(allow_null=True)
    delivery = serializers.CharField(required=False)
    request_options = serializers.DictField(required=False)


class ChallengeVerifySerializer(StrictSerializer):
    """An answer: `code`, or `credential` for a passkey."""

    code = serializers.CharField(
        max_length=64, required=False, trim_whitespace=False, allow_blank=True, default=""
    )
    credential = serializers.DictField(required=False, default=dict)
    trust_device = serializers.BooleanField(required=False, default=False)
    device_name = serializers.CharField(max_length=100, required=False, default="")


class StepUpVerifiedSerializer(serializers.Serializer[Any]):
    """The session has proved a second factor; its tokens stay as they are."""

    status = serializers.ChoiceField(choices=["verified"])
    aal = serializers.IntegerField(min_value=1, max_value=2)
    valid_until = serializers.IntegerField(help_text="Unix seconds.")


CHALLENGE_RESULT: Final = PolymorphicProxySerializer(
    component_name="ChallengeResult",
    serializers={
        "authenticated": LoginAnswerSerializer,
        "verified": StepUpVerifiedSerializer,
        "mfa_enrollment_required": EnrolmentRequiredSerializer,
    },
    resource_type_field_name="status",
)


class DefaultMethodSerializer(StrictSerializer):
    """The method to be offered first."""

    method = serializers.ChoiceField(
        choices=[name for name in MFA_METHODS if name != "backup_codes"]
    )


class TrustedDeviceSerializer(serializers.Serializer[Any]):
    """A trusted device; times in Unix seconds."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    created_at = serializers.SerializerMethodField()
    last_used_at = serializers.SerializerMethodField()
    expires_at = serializers.SerializerMethodField()

    def get_created_at(self, row: Any) -> int:
        """Give Unix seconds."""
        return int(row.created_at.timestamp())

    def get_last_used_at(self, row: Any) -> int:
        """Give Unix seconds."""
        return int(row.last_used_at.timestamp())

    def get_expires_at(self, row: Any) -> int:
        """Give Unix seconds."""
        return int(row.expires_at.timestamp())


class PolicySerializer(serializers.Serializer[Any]):
    """The organization's policy; times in Unix seconds."""

    required = serializers.BooleanField()  # type: ignore[assignment]  # published name
    allowed_methods = serializers.ListField(child=serializers.CharField())
    grace_period_days = serializers.IntegerField()
    grace_ends_at = serializers.IntegerField(allow_null=True)
    recovery_questions = serializers.BooleanField(help_text="Security questions may be used.")
    updated_at = serializers.IntegerField(allow_null=True)
    updated_by = serializers.UUIDField(allow_null=True)


class PolicyUpdateSerializer(StrictSerializer):
    """What changes; what is left out stays."""

    required = serializers.BooleanField(required=False)  # type: ignore[assignment]  # published name
    allowed_methods = serializers.ListField(
        child=serializers.ChoiceField(choices=list(MFA_METHODS)), required=False, allow_empty=False
    )
    grace_period_days = serializers.IntegerField(required=False, min_value=0, max_value=365)
    recovery_questions = serializers.BooleanField(required=False)


class ComplianceSerializer(serializers.Serializer[Any]):
    """Where the caller stands; with `scope=organization` the counts and who is missing."""

    compliant = serializers.BooleanField(required=False)
    required = serializers.BooleanField()  # type: ignore[assignment]  # published name
    enabled_methods = serializers.ListField(child=serializers.CharField(), required=False)
    allowed_methods = serializers.ListField(child=serializers.CharField())
    grace_ends_at = serializers.IntegerField(allow_null=True)
    days_left = serializers.IntegerField(allow_null=True, required=False)
    reasons = serializers.ListField(child=serializers.CharField(), required=False)
    members = serializers.IntegerField(required=False)
    compliant_members = serializers.IntegerField(required=False)
    missing = serializers.ListField(child=serializers.DictField(), required=False)


class ReauthenticateSerializer(StrictSerializer):
    """The password, once more."""

    password = serializers.CharField(max_length=512, trim_whitespace=False, write_only=True)
