"""The caller's own sessions in JSON; times in Unix seconds."""

from typing import Any

from rest_framework import serializers

from accounts.models import Session


class SessionEnvironmentSerializer(serializers.Serializer[Any]):
    """The environment of a session."""

    id = serializers.CharField(source="slug")
    name = serializers.CharField()


class SessionSerializer(serializers.Serializer[Session]):
    """An active session. last_used_at: when its tokens were last refreshed."""

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
