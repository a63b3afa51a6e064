"""SMS as a factor, in JSON."""

from typing import Any, Final

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from common.api.views import StrictSerializer
from twofactor.factors.serializers import SixDigitsField

MAX_NUMBER_CHARS: Final = 40


@extend_schema_field(
    {
        "type": "string",
        "maxLength": MAX_NUMBER_CHARS,
        # The plus may be a full-width one, as some input methods write it.
        "pattern": "^[^0-9]*[+\uff0b]",
        "description": "With + and the country code, as +49 151 23456789.",
    }
)
class PhoneNumberField(serializers.CharField):
    """A phone number in international format; ``enrolment.canonical`` checks it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=MAX_NUMBER_CHARS, **options)


class SmsSetupSerializer(StrictSerializer):
    """A number in international format."""

    phone_number = PhoneNumberField()


class SmsSetupAnswerSerializer(serializers.Serializer[Any]):
    """A code was sent."""

    verification_id = serializers.CharField()
    expires_at = serializers.IntegerField()
    phone_hint = serializers.CharField()
    delivery = serializers.CharField()


class SmsVerifySerializer(StrictSerializer):
    """The code that was sent."""

    verification_id = serializers.CharField(max_length=64)
    code = SixDigitsField()
