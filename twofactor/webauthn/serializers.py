"""Passkeys in JSON, with the published field names."""

from typing import Any

from rest_framework import serializers
from webauthn.helpers import bytes_to_base64url

from accounts.serializers import FinishedSignInSerializer
from common.api.views import StrictSerializer
from common.names import NameField
from twofactor.models import Passkey


class PasskeyRegisterSerializer(StrictSerializer):
    """Where the passkey will be used; all fields are optional, and given values must be allowed."""

    rp_origin = serializers.CharField(max_length=300, required=False, default="")
    rp_id = serializers.CharField(max_length=253, required=False, default="")
    rp_name = serializers.CharField(max_length=100, required=False, default="")
    user_email = serializers.CharField(max_length=254, required=False, default="")
    display_name = serializers.CharField(max_length=100, required=False, default="")


class PasskeySessionSerializer(serializers.Serializer[Any]):
    """The registration's session, valid for five minutes and one answer."""

    session_id = serializers.CharField()


class PasskeyRegisterAnswerSerializer(serializers.Serializer[Any]):
    """The options for `navigator.credentials.create()`, in their JSON form."""

    creation_options = serializers.DictField()
    session_data = PasskeySessionSerializer()


class PasskeyRegisterFinishSerializer(StrictSerializer):
    """The browser's response (`PublicKeyCredential.toJSON()`), and a name for the passkey."""

    session_id = serializers.CharField(max_length=64)
    credential = serializers.DictField()
    credential_name = NameField(max_length=100, required=False, default="Passkey")


class PasskeyRegisteredSerializer(FinishedSignInSerializer):
    """The new passkey, and the result of the pending sign-in, if there was one."""

    credential_id = serializers.CharField(help_text="base64url")
    name = serializers.CharField()
    created_at = serializers.IntegerField(help_text="Unix seconds")


class PasskeySerializer(serializers.Serializer[Passkey]):
    """A passkey; times in Unix seconds."""

    credential_id = serializers.SerializerMethodField()
    name = serializers.CharField()
    created_at = serializers.SerializerMethodField()
    last_used_at = serializers.SerializerMethodField()
    rp_id = serializers.CharField()
    transports = serializers.ListField(child=serializers.CharField())
    backup_eligible = serializers.BooleanField(source="is_backup_eligible")
    user_verified = serializers.BooleanField(source="is_user_verified")

    def get_credential_id(self, row: Passkey) -> str:
        """Return base64url."""
        return bytes_to_base64url(bytes(row.credential_id))

    def get_created_at(self, row: Passkey) -> int:
        """Return Unix seconds."""
        return int(row.created_at.timestamp())

    def get_last_used_at(self, row: Passkey) -> int | None:
        """Return Unix seconds."""
        return int(row.last_used_at.timestamp()) if row.last_used_at else None


class PasskeySignInStartSerializer(StrictSerializer):
    """Both are optional: with an e-mail only that account's passkeys are accepted."""

    email = serializers.CharField(max_length=254, required=False, default="")
    rp_id = serializers.CharField(max_length=253, required=False, default="")


class PasskeySignInStartAnswerSerializer(serializers.Serializer[Any]):
    """The options for `navigator.credentials.get()`, in their JSON form."""

    challenge_id = serializers.CharField()
    expires_at = serializers.IntegerField(help_text="Unix seconds")
    request_options = serializers.DictField()


class PasskeySignInFinishSerializer(StrictSerializer):
    """The browser's response; ``environment`` takes an id or a name."""

    challenge_id = serializers.CharField(max_length=64)
    credential = serializers.DictField()
    environment = serializers.CharField(max_length=100, required=False, default="")
