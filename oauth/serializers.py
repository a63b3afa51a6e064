"""External sign-in in JSON."""

from typing import Any, Final

from drf_spectacular.utils import PolymorphicProxySerializer, extend_schema_serializer
from rest_framework import serializers

from accounts.serializers import (
    SECRET_CHARS,
    ChallengeField,
    EnrolmentRequiredSerializer,
    LoginAnswerSerializer,
    SecondFactorRequiredSerializer,
    UnixSecondsField,
)
from common.api.views import StrictSerializer
from oauth.models import Identity


class ExactField(serializers.CharField):
    """A text that is compared or returned unchanged, so it is not trimmed."""

    def __init__(self, **options: Any) -> None:
        super().__init__(trim_whitespace=False, **options)


class AuthorizationRequestSerializer(StrictSerializer):
    """A client's request for a transaction; the challenge is that of RFC 7636, S256 only."""

    redirect_to = ExactField(max_length=2000, required=False, default="")
    state = ExactField(max_length=512, required=False, default="")
    code_challenge = ChallengeField()
    code_challenge_method = serializers.ChoiceField(
        choices=["S256"], required=False, default="S256"
    )


class StartSerializer(AuthorizationRequestSerializer):
    """The query of a sign-in's start; ``environment`` takes an id or a name."""

    environment = serializers.CharField(max_length=100, required=False, default="")


class TicketSerializer(StrictSerializer):
    """The query of a link's start."""

    ticket = serializers.CharField(max_length=SECRET_CHARS)


class CodeExchangeSerializer(StrictSerializer):
    """The one-time code, and the verifier of the challenge that was given to the start."""

    code = serializers.CharField(max_length=SECRET_CHARS)
    code_verifier = serializers.CharField(max_length=SECRET_CHARS)
    invitation_id = serializers.UUIDField(
        required=False,
        allow_null=True,
        help_text="The invitation to accept with a new account; null for none. Without it an "
        "invited address gets 409 `invitation_open`.",
    )


class LinkSerializer(StrictSerializer):
    """Either a transaction to start, or the ``link_token`` of a conflict."""

    link_token = serializers.CharField(max_length=SECRET_CHARS, required=False)
    redirect_to = ExactField(max_length=2000, required=False, default="")
    state = ExactField(max_length=512, required=False, default="")
    code_challenge = ChallengeField(required=False)
    code_challenge_method = serializers.ChoiceField(
        choices=["S256"], required=False, default="S256"
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Require exactly one of the two."""
        if ("link_token" in attrs) == ("code_challenge" in attrs):
            raise serializers.ValidationError(
                {
                    "code_challenge": "Send this, or a link_token.",
                    "link_token": "Send this, or a code_challenge.",
                }
            )
        return attrs


class ProviderSerializer(serializers.Serializer[Any]):
    """A configured provider."""

    name = serializers.CharField()
    title = serializers.CharField()
    start_url = serializers.URLField()


class ProvidersSerializer(serializers.Serializer[Any]):
    """The configured providers, in the order in which to show them."""

    providers = ProviderSerializer(many=True)


class UsedProviderSerializer(serializers.Serializer[Any]):
    """A provider. members: the addresses of up to 20 linked members."""

    name = serializers.CharField()
    title = serializers.CharField()
    is_offered = serializers.BooleanField()
    member_count = serializers.IntegerField()
    members = serializers.ListField(child=serializers.CharField())


@extend_schema_serializer(many=False)
class ProviderUseSerializer(serializers.Serializer[Any]):
    """The providers that are configured or used."""

    providers = UsedProviderSerializer(many=True)


class IdentitySerializer(serializers.ModelSerializer[Identity]):
    """A linked identity; times in Unix seconds."""

    title = serializers.CharField(source="get_provider_display", read_only=True)
    created_at = UnixSecondsField()
    last_used_at = UnixSecondsField(allow_null=True)

    class Meta:
        """The fields that its owner can read."""

        model = Identity
        fields = (
            "id",
            "provider",
            "title",
            "email",
            "is_private_email",
            "username",
            "name",
            "created_at",
            "last_used_at",
        )
        read_only_fields = fields


class LinkedSerializer(serializers.Serializer[Any]):
    """A completed link."""

    status = serializers.ChoiceField(choices=["linked"])
    identity = IdentitySerializer()


class LinkStartedSerializer(serializers.Serializer[Any]):
    """A link to continue in the browser: open ``start_url`` there."""

    status = serializers.ChoiceField(choices=["started"])
    start_url = serializers.URLField()
    expires_at = UnixSecondsField()


CODE_EXCHANGE_RESULT: Final = PolymorphicProxySerializer(
    component_name="ExternalSignIn",
    serializers={
        "authenticated": LoginAnswerSerializer,
        "mfa_required": SecondFactorRequiredSerializer,
        "mfa_enrollment_required": EnrolmentRequiredSerializer,
        "linked": LinkedSerializer,
    },
    resource_type_field_name="status",
)

LINK_RESULT: Final = PolymorphicProxySerializer(
    component_name="Link",
    serializers={"started": LinkStartedSerializer, "linked": LinkedSerializer},
    resource_type_field_name="status",
)
