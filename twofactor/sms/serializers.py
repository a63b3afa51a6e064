"""SMS as a factor, in JSON."""

from typing import Any

from rest_framework import serializers

from platform_site.lib.api import StrictSerializer


class SmsSetupSerializer(StrictSerializer):
    """A number in international format."""

    phone_number = serializers.CharField(max_length=40)


class SmsSetupAnswerSerializer(serializers.Serializer[Any]):
    """A code is on its way."""

    verification_id = serializers.CharField()
    expires_at = serializers.IntegerField()
    phone_hint = serializers.CharField()
    delivery = serializers.CharField()


class SmsVerifySerializer(StrictSerializer):
    """The code that was sent."""

    verification_id = serializers.CharField(max_length=64)
    code = serializers.CharField(max_length=64, trim_whitespace=False)
