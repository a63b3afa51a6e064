"""The policy and compliance with it, in JSON."""

from typing import Any

from rest_framework import serializers

from common.api.views import StrictSerializer
from environments.models import MFA_METHODS


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
    """Changes of the policy; omitted fields stay unchanged."""

    required = serializers.BooleanField(required=False)  # type: ignore[assignment]  # published name
    allowed_methods = serializers.ListField(
        child=serializers.ChoiceField(choices=list(MFA_METHODS)), required=False, allow_empty=False
    )
    grace_period_days = serializers.IntegerField(required=False, min_value=0, max_value=365)
    recovery_questions = serializers.BooleanField(required=False)


class AffectedMemberSerializer(serializers.Serializer[Any]):
    """A member without a factor that the previewed policy allows."""

    user_id = serializers.UUIDField()
    email = serializers.EmailField(allow_null=True)
    restricted_from = serializers.IntegerField(
        help_text="From then on (Unix seconds) the member can only set up a factor."
    )
    at_once = serializers.BooleanField(help_text="No grace is left for this member.")


class PolicyPreviewSerializer(serializers.Serializer[Any]):
    """The effect of a change of the policy."""

    policy = PolicySerializer(help_text="As it would be; `updated_at` is that of the last change.")
    affected_members = serializers.IntegerField()
    affected = AffectedMemberSerializer(many=True, help_text="The first 200 of them.")
    trusted_devices = serializers.IntegerField(help_text="Trusted devices that would end.")


class ComplianceQuerySerializer(StrictSerializer):
    """Whose compliance to return."""

    scope = serializers.ChoiceField(choices=["user", "organization"], default="user")


class ComplianceSerializer(serializers.Serializer[Any]):
    """The caller's compliance; with `scope=organization` the counts and who is missing."""

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
