"""Trusted devices in JSON."""

from typing import Any

from rest_framework import serializers


class TrustedDeviceSerializer(serializers.Serializer[Any]):
    """A trusted device; times in Unix seconds."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    created_at = serializers.SerializerMethodField()
    last_used_at = serializers.SerializerMethodField()
    expires_at = serializers.SerializerMethodField()

    def get_created_at(self, row: Any) -> int:
        """Return Unix seconds."""
        return int(row.created_at.timestamp())

    def get_last_used_at(self, row: Any) -> int:
        """Return Unix seconds."""
        return int(row.last_used_at.timestamp())

    def get_expires_at(self, row: Any) -> int:
        """Return Unix seconds."""
        return int(row.expires_at.timestamp())
