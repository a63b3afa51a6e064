"""Accounts in JSON, with the published field names."""

from typing import Any

from rest_framework import serializers

from accounts.passwords import MAX_CHARS
from environments.serializers import EnvironmentRefSerializer
from platform_site.lib.api import StrictSerializer


class PasswordField(serializers.CharField):
    """A password: never trimmed, never shown; its rules are checked where it is set."""

    def __init__(self, **options: Any) -> None:
        # Twice the limit: NFC may shorten a text, and the precise refusal names the rule.
        super().__init__(
            trim_whitespace=False, max_length=2 * MAX_CHARS, write_only=True, **options
        )


class SignupSerializer(StrictSerializer):
    """Sign-up."""

    email = serializers.EmailField(max_length=254)
    password = PasswordField()
    organization = serializers.CharField(max_length=200, required=False, default="")


class LoginSerializer(StrictSerializer):
    """Login; ``environment`` takes an id or a name."""

    email = serializers.CharField(max_length=254)
    password = PasswordField()
    environment = serializers.CharField(max_length=100, required=False, default="")


class RefreshTokenSerializer(StrictSerializer):
    """A refresh token."""

    refresh_token = serializers.CharField(max_length=8192)


class SwitchSerializer(StrictSerializer):
    """A switch; ``keep_current`` leaves the present session going (two tabs, two environments)."""

    refresh_token = serializers.CharField(max_length=8192)
    environment = serializers.CharField(max_length=100)
    keep_current = serializers.BooleanField(required=False, default=False)


class TokenPairSerializer(serializers.Serializer[Any]):
    """The tokens of a session; times in Unix seconds."""

    access_token = serializers.CharField()
    refresh_token = serializers.CharField()
    access_expires_at = serializers.IntegerField()
    refresh_expires_at = serializers.IntegerField()


class ScopedTokenPairSerializer(TokenPairSerializer):
    """The tokens of a session and where they are good."""

    environment = EnvironmentRefSerializer()


class SignupAnswerSerializer(ScopedTokenPairSerializer):
    """The tokens of the first session; the e-mail is to be verified with the code mailed to it."""

    email_verified = serializers.BooleanField()


class WarningSerializer(serializers.Serializer[Any]):
    """What a user should know after signing in."""

    code = serializers.CharField()


class LoginAnswerSerializer(ScopedTokenPairSerializer):
    """A login that is through: ``status`` is ``authenticated``."""

    status = serializers.ChoiceField(choices=["authenticated"])
    email_verified = serializers.BooleanField()
    warnings = WarningSerializer(many=True)


class WhoamiSerializer(serializers.Serializer[Any]):
    """The session behind the token; a development token has no user and no session."""

    user_id = serializers.UUIDField(allow_null=True)
    email = serializers.EmailField(allow_null=True)
    email_verified = serializers.BooleanField(allow_null=True)
    org_id = serializers.IntegerField()
    organization = serializers.CharField()
    environment = EnvironmentRefSerializer()
    roles = serializers.ListField(child=serializers.CharField())
    labels = serializers.ListField(child=serializers.CharField())
    session_id = serializers.UUIDField(allow_null=True)
    aal = serializers.IntegerField()
    amr = serializers.ListField(child=serializers.CharField())
    auth_time = serializers.IntegerField(allow_null=True)
    access_expires_at = serializers.IntegerField(allow_null=True)


class PermissionsSerializer(serializers.Serializer[Any]):
    """Effective permissions: ``{resource: [actions]}``."""

    roles = serializers.ListField(child=serializers.CharField())
    permissions = serializers.DictField(child=serializers.ListField(child=serializers.CharField()))
