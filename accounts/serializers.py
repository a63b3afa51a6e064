"""Accounts and their sessions in JSON, with the published field names; fields for other apps."""

from datetime import datetime
from typing import Any, Final

from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework import serializers

from accounts.models import Session
from accounts.passwords import MAX_CHARS
from common.api.views import StrictSerializer
from common.emails import AddressField
from common.names import NameField
from common.one_time_secrets import PKCE_CHALLENGE
from common.principals import Principal
from environments.serializers import EnvironmentRefSerializer

SECRET_CHARS = 200


class PasswordField(serializers.CharField):
    """A password: never trimmed or returned; its rules are checked where it is set."""

    def __init__(self, **options: Any) -> None:
        # Twice the limit: NFC may shorten a text, and the check of the limit has a better message.
        super().__init__(
            trim_whitespace=False, max_length=2 * MAX_CHARS, write_only=True, **options
        )


class ChallengeField(serializers.RegexField):
    """The S256 challenge of a PKCE verifier."""

    def __init__(self, **options: Any) -> None:
        super().__init__(rf"\A{PKCE_CHALLENGE.pattern}\Z", trim_whitespace=False, **options)


class UnixSecondsField(serializers.IntegerField):
    """A time in Unix seconds."""

    def to_representation(self, value: datetime) -> int:  # type: ignore[override]  # a moment's own
        """Return Unix seconds."""
        return int(value.timestamp())


class SignupSerializer(StrictSerializer):
    """Sign-up."""

    email = AddressField()
    password = PasswordField()
    organization = NameField(max_length=200, required=False, default="")


class LoginSerializer(StrictSerializer):
    """Login; ``environment`` takes an id or a name."""

    email = serializers.CharField(max_length=254)
    password = PasswordField()
    environment = serializers.CharField(max_length=100, required=False, default="")


class RefreshTokenSerializer(StrictSerializer):
    """A refresh token."""

    refresh_token = serializers.CharField(max_length=8192)


class SwitchSerializer(StrictSerializer):
    """A switch; ``keep_current`` keeps the present session (two tabs, two environments)."""

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
    """The tokens of a session and its environment."""

    environment = EnvironmentRefSerializer()


class SignupAnswerSerializer(ScopedTokenPairSerializer):
    """The tokens of the first session; the e-mail has to be verified with the code mailed to it."""

    email_verified = serializers.BooleanField()


class WarningSerializer(serializers.Serializer[Any]):
    """What a user should know after signing in."""

    code = serializers.ChoiceField(choices=["mfa_enrollment_due", "address_moved"])
    deadline = serializers.IntegerField(
        required=False, help_text="Unix seconds; with `mfa_enrollment_due`."
    )


class LoginAnswerSerializer(ScopedTokenPairSerializer):
    """A finished sign-in; ``device_token`` replaces that of a trusted device."""

    status = serializers.ChoiceField(choices=["authenticated"])
    email_verified = serializers.BooleanField()
    warnings = WarningSerializer(many=True)
    device_token = serializers.CharField(required=False)


class SignInMethodSerializer(serializers.Serializer[Any]):
    """A second factor that may be used for a sign-in."""

    method = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # published name
    default = serializers.BooleanField()


class SecondFactorRequiredSerializer(serializers.Serializer[Any]):
    """A sign-in that waits for a second factor; ``mfa_token`` authorizes its challenge."""

    status = serializers.ChoiceField(choices=["mfa_required"])
    mfa_token = serializers.CharField()
    mfa_expires_at = serializers.IntegerField()
    methods = SignInMethodSerializer(many=True)
    trusted_device_allowed = serializers.BooleanField()


class EnrolmentRequiredSerializer(serializers.Serializer[Any]):
    """A sign-in that may only set up a second factor; ``mfa_token`` authorizes the set-up."""

    status = serializers.ChoiceField(choices=["mfa_enrollment_required"])
    mfa_token = serializers.CharField()
    mfa_expires_at = serializers.IntegerField()
    allowed_methods = serializers.ListField(child=serializers.CharField())


SIGN_IN_RESULT: Final = PolymorphicProxySerializer(
    component_name="SignInResult",
    serializers={
        "authenticated": LoginAnswerSerializer,
        "mfa_required": SecondFactorRequiredSerializer,
        "mfa_enrollment_required": EnrolmentRequiredSerializer,
    },
    resource_type_field_name="status",
)


class FinishedSignInSerializer(serializers.Serializer[Any]):
    """The result of a sign-in, present if the request finished a pending one.

    A token pair, or what a login stage requires next.
    """

    status = serializers.ChoiceField(
        choices=["authenticated", "mfa_enrollment_required"], required=False
    )
    mfa_token = serializers.CharField(required=False)
    mfa_expires_at = serializers.IntegerField(required=False)
    allowed_methods = serializers.ListField(child=serializers.CharField(), required=False)
    access_token = serializers.CharField(required=False)
    refresh_token = serializers.CharField(required=False)
    access_expires_at = serializers.IntegerField(required=False)
    refresh_expires_at = serializers.IntegerField(required=False)
    environment = EnvironmentRefSerializer(required=False)
    email_verified = serializers.BooleanField(required=False)
    warnings = WarningSerializer(many=True, required=False)
    device_token = serializers.CharField(required=False)


class WhoamiSerializer(serializers.Serializer[Principal]):
    """The session behind the token; API keys and development tokens have no user and no session.

    access_expires_at: of an API key, the end of the key.
    """

    user_id = serializers.UUIDField(allow_null=True)
    email = serializers.EmailField(allow_null=True)
    email_verified = serializers.BooleanField(allow_null=True)
    org_id = serializers.IntegerField(source="organization_id")
    organization = serializers.CharField(source="organization_name")
    environment = EnvironmentRefSerializer()
    roles = serializers.ListField(child=serializers.CharField())
    labels = serializers.ListField(child=serializers.CharField())
    session_id = serializers.UUIDField(allow_null=True)
    aal = serializers.IntegerField()
    amr = serializers.ListField(child=serializers.CharField())
    auth_time = serializers.IntegerField(allow_null=True)
    access_expires_at = serializers.IntegerField(allow_null=True)
    api_key_id = serializers.UUIDField(source="key_id", allow_null=True)


class PermissionsSerializer(serializers.Serializer[Any]):
    """Effective permissions: ``{resource: [actions]}``."""

    roles = serializers.ListField(child=serializers.CharField())
    permissions = serializers.DictField(child=serializers.ListField(child=serializers.CharField()))


class SessionEnvironmentSerializer(serializers.Serializer[Any]):
    """The environment of a session."""

    id = serializers.CharField(source="slug")
    name = serializers.CharField()


class SessionSerializer(serializers.Serializer[Session]):
    """An active session. address, agent, last_used_at: of its last refresh, or of its opening."""

    id = serializers.UUIDField()
    current = serializers.BooleanField(help_text="True for the session that asks.")
    environment = SessionEnvironmentSerializer()
    address = serializers.CharField()
    agent = serializers.CharField()
    aal = serializers.IntegerField()
    amr = serializers.ListField(child=serializers.CharField())
    created_at = serializers.SerializerMethodField()
    last_used_at = serializers.SerializerMethodField()
    ends_at = serializers.SerializerMethodField()

    def get_created_at(self, session: Session) -> int:
        """Return Unix seconds."""
        return int(session.created_at.timestamp())

    def get_last_used_at(self, session: Session) -> int:
        """Return Unix seconds."""
        return int(session.rotated_at.timestamp())

    def get_ends_at(self, session: Session) -> int:
        """Return Unix seconds."""
        return int(session.ends_at.timestamp())


class SessionsEndedSerializer(serializers.Serializer[Any]):
    """How many sessions ended."""

    ended = serializers.IntegerField()
