"""TOTP in JSON."""

from typing import Any

from rest_framework import serializers

from common.api.views import StrictSerializer
from twofactor.factors.serializers import EnrolledSerializer, SixDigitsField


class TotpSetupSerializer(StrictSerializer):
    """The names that the authenticator app shows; both have defaults."""

    issuer = serializers.CharField(max_length=100, required=False, default="")
    account_name = serializers.CharField(max_length=254, required=False, default="")


class TotpSetupAnswerSerializer(serializers.Serializer[Any]):
    """The seed, shown once."""

    secret_id = serializers.CharField()
    secret = serializers.CharField(help_text="base32")
    qr_code_png = serializers.CharField(help_text="base64-encoded PNG")


class TotpVerifySerializer(StrictSerializer):
    """The first code."""

    secret_id = serializers.CharField(max_length=64)
    code = SixDigitsField()


class TotpVerifyAnswerSerializer(EnrolledSerializer):
    """Backup codes are included once, when TOTP is first enabled."""

    backup_codes = serializers.ListField(child=serializers.CharField())
