"""One's own sessions, password and e-mail in JSON; times in Unix seconds."""

from typing import Any

from rest_framework import serializers

from accounts.mailed_secrets import MAX_TOKEN_CHARS
from accounts.models import Session
from accounts.serializers import PasswordField
from platform_site.lib.api import StrictSerializer


class SessionEnvironmentSerializer(serializers.Serializer[Any]):
    """Where a session acts."""

    id = serializers.CharField(source="slug")
    name = serializers.CharField()


class SessionSerializer(serializers.Serializer[Session]):
    """A live session. last_used_at: when its tokens were last made, at most one refresh ago."""

    id = serializers.UUIDField()
    current = serializers.SerializerMethodField()
    environment = SessionEnvironmentSerializer()
    address = serializers.CharField()
    agent = serializers.CharField()
    aal = serializers.IntegerField()
    amr = serializers.ListField(child=serializers.CharField())
    created_at = serializers.SerializerMethodField()
    last_used_at = serializers.SerializerMethodField()
    ends_at = serializers.SerializerMethodField()

    def get_current(self, session: Session) -> bool:
        """Say whether it is the one that asks."""
        return bool(session.pk == self.context["current_id"])

    def get_created_at(self, session: Session) -> int:
        """Give Unix seconds."""
        return int(session.created_at.timestamp())

    def get_last_used_at(self, session: Session) -> int:
        """Give Unix seconds."""
        return int(session.rotated_at.timestamp())

    def get_ends_at(self, session: Session) -> int:
        """Give Unix seconds."""
        return int(session.ends_at.timestamp())


class SessionsEndedSerializer(serializers.Serializer[Any]):
    """How many sessions ended."""

    ended = serializers.IntegerField()


class PasswordStateSerializer(serializers.Serializer[Any]):
    """Whether the account has a password; one that only signs in by other ways has none."""

    has_password = serializers.BooleanField()


class PasswordChangeSerializer(StrictSerializer):
    """A change of password; the present one is left out where the account has none."""

    current_password = PasswordField(required=False, default="")
    password = PasswordField()
    end_other_sessions = serializers.BooleanField(required=False, default=True)


class EmailSerializer(serializers.Serializer[Any]):
    """Where the account's mailbox stands.

    email: null for an account that has to give another address.
    pending_email: the address to change to, once its code is given; null for none. code_expires_at:
    until when the code that was mailed last can be given; null where none is awaited.
    """

    email = serializers.EmailField(allow_null=True)
    email_verified = serializers.BooleanField()
    pending_email = serializers.EmailField(allow_null=True)
    code_expires_at = serializers.IntegerField(allow_null=True)


class EmailChangeSerializer(StrictSerializer):
    """The address to change to."""

    email = serializers.EmailField(max_length=254)


class EmailCodeSerializer(StrictSerializer):
    """The code that was mailed: `ABCD-EFGH`; case, blanks and dashes are ignored."""

    code = serializers.CharField(max_length=40)


class EmailCancelSerializer(StrictSerializer):
    """The token that went to the present address."""

    token = serializers.CharField(max_length=MAX_TOKEN_CHARS)
