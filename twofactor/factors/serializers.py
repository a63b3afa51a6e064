"""Factors in JSON, with the published field names."""

from typing import Any

from rest_framework import serializers

from accounts.serializers import (
    FinishedSignInSerializer,
)
from common.api.views import StrictSerializer
from environments.models import MFA_METHODS
from twofactor.one_time_codes import MAX_CHARS


class SixDigitsField(serializers.CharField):
    """A numeric one-time code; ``one_time_codes.six_digits`` reads it, with its own error."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=MAX_CHARS, trim_whitespace=False, **options)


class EnrolledSerializer(FinishedSignInSerializer):
    """The factor is active; includes the result of the pending sign-in, if there was one."""

    success = serializers.BooleanField()


class StatusSerializer(serializers.Serializer[Any]):
    """The caller's second factors."""

    enabled = serializers.BooleanField()
    required = serializers.BooleanField()  # type: ignore[assignment]  # published name
    enabled_methods = serializers.ListField(child=serializers.CharField())
    default_method = serializers.CharField(allow_null=True)
    phone_verified = serializers.BooleanField()
    backup_codes_remaining = serializers.IntegerField()


class FactorSerializer(serializers.Serializer[Any]):
    """A kind of second factor."""

    name = serializers.CharField(help_text="As in `enabled_methods` and in paths.")
    challenge_name = serializers.CharField(help_text="As in `methods` of a challenge.")
    label = serializers.CharField()  # type: ignore[assignment]  # a field of the answer
    is_second_factor = serializers.BooleanField(
        help_text="False for what only replaces another factor."
    )


class FactorsSerializer(serializers.Serializer[Any]):
    """The kinds of second factors, in the order in which to offer them."""

    factors = FactorSerializer(many=True)


class DefaultMethodSerializer(StrictSerializer):
    """The method to use by default."""

    method = serializers.ChoiceField(
        choices=[name for name in MFA_METHODS if name != "backup_codes"]
    )
