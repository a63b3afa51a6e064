"""Sign-ins at a terminal in JSON; times in Unix seconds."""

from typing import Any, Final

from drf_spectacular.utils import PolymorphicProxySerializer
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

LOWEST_PORT: Final = 1024
HIGHEST_PORT: Final = 65535


class TerminalStartSerializer(StrictSerializer):
    """A program that wants to sign in."""

    code_challenge = ChallengeField(help_text="The S256 challenge of the program's verifier.")
    # Shown to the deciding user: no blanks, no lookalike letters, no bidirectional control
    # characters.
    host = serializers.RegexField(
        r"\A[A-Za-z0-9._-]{1,64}\Z", help_text="The name of the machine, shown on the page."
    )
    port = serializers.IntegerField(
        min_value=LOWEST_PORT,
        max_value=HIGHEST_PORT,
        required=False,
        default=None,
        allow_null=True,
        help_text="Of a listener on 127.0.0.1; without it the page shows the code.",
    )
    environment = serializers.CharField(
        max_length=100, required=False, default="", help_text="An id or a name."
    )


class TerminalStartedSerializer(serializers.Serializer[Any]):
    """A request. matching_code: shown on the page as well; page_url: for the user's browser."""

    request_id = serializers.CharField()
    matching_code = serializers.CharField()
    page_url = serializers.URLField()
    expires_at = UnixSecondsField()


class TerminalSignInSerializer(serializers.Serializer[Any]):
    """The requesting program. ``host`` is chosen by the program, the other fields are not."""

    matching_code = serializers.CharField()
    host = serializers.CharField()
    program = serializers.CharField()
    address = serializers.CharField()
    is_same_address = serializers.BooleanField(
        help_text="True if the caller comes from the same address."
    )
    environment = serializers.CharField(
        help_text="The environment that the program will be signed in to; empty if there is none."
    )
    created_at = UnixSecondsField()
    expires_at = UnixSecondsField()


class TerminalAllowedSerializer(serializers.Serializer[Any]):
    """The one-time code, for `http://127.0.0.1:PORT/callback` or for the user to copy."""

    code = serializers.CharField()
    port = serializers.IntegerField(allow_null=True)
    expires_at = UnixSecondsField()


class TerminalDeniedSerializer(serializers.Serializer[Any]):
    """The program's listener, to be notified by the browser."""

    port = serializers.IntegerField(allow_null=True)


class TerminalExchangeSerializer(StrictSerializer):
    """The one-time code, and the verifier of the start's challenge."""

    code = serializers.CharField(max_length=SECRET_CHARS)
    code_verifier = serializers.CharField(max_length=SECRET_CHARS)


TERMINAL_EXCHANGE_RESULT: Final = PolymorphicProxySerializer(
    component_name="TerminalSession",
    serializers={
        "authenticated": LoginAnswerSerializer,
        "mfa_required": SecondFactorRequiredSerializer,
        "mfa_enrollment_required": EnrolmentRequiredSerializer,
    },
    resource_type_field_name="status",
)
