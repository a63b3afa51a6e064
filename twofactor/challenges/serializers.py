"""Challenges in JSON."""

from typing import Any, Final

from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework import serializers

from accounts.serializers import (
    EnrolmentRequiredSerializer,
    LoginAnswerSerializer,
)
from common.api.views import StrictSerializer
from common.names import NameField
from environments.models import MFA_METHODS
from twofactor import registry

CHALLENGE_METHODS: Final = registry.challenge_names(MFA_METHODS)


class ChallengeQuerySerializer(StrictSerializer):
    """The method of the challenge."""

    method = serializers.ChoiceField(choices=CHALLENGE_METHODS, required=False)


class ChallengeSerializer(serializers.Serializer[Any]):
    """A challenge."""

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
    device_name = NameField(max_length=100, required=False, default="")


class StepUpVerifiedSerializer(serializers.Serializer[Any]):
    """The session has proven a second factor; its tokens stay the same."""

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


class ReauthenticateSerializer(StrictSerializer):
    """The password."""

    password = serializers.CharField(max_length=512, trim_whitespace=False, write_only=True)
