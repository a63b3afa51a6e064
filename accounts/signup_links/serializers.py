"""Sign-up by a mailed link, in JSON."""

from typing import Any

from rest_framework import serializers

from accounts.mailed_secrets import MAX_TOKEN_CHARS
from accounts.serializers import PasswordField
from common.api.views import StrictSerializer
from common.emails import AddressField
from common.names import NameField


class SignupLinkRequestSerializer(StrictSerializer):
    """The address to mail a link to."""

    email = AddressField()


class SignupLinkSerializer(serializers.Serializer[Any]):
    """The same for every address: if it can sign up, a link was mailed."""

    expires_at = serializers.IntegerField(help_text="Unix seconds")


class SignupLinkCompleteSerializer(StrictSerializer):
    """The token of the mailed link, and the password and organization of the new account."""

    token = serializers.CharField(max_length=MAX_TOKEN_CHARS)
    password = PasswordField()
    organization = NameField(max_length=200, required=False, allow_blank=True, default="")
