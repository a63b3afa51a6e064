"""E-mail as a factor, in JSON."""

from typing import Any

from rest_framework import serializers

from common.api.views import StrictSerializer
from twofactor.factors.serializers import SixDigitsField


class EmailSetupSerializer(StrictSerializer):
    """An empty body: the account's own address is used."""


class EmailSetupAnswerSerializer(serializers.Serializer[Any]):
    """A code was sent."""

    verification_id = serializers.CharField()
    expires_at = serializers.IntegerField()
    email_hint = serializers.CharField()
    delivery = serializers.CharField()


class EmailVerifySerializer(StrictSerializer):
    """The code that was sent."""

    verification_id = serializers.CharField(max_length=64)
    code = SixDigitsField()
