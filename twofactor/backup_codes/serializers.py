"""Backup codes in JSON."""

from typing import Any

from rest_framework import serializers


class BackupCodesSerializer(serializers.Serializer[Any]):
    """New codes, shown once."""

    backup_codes = serializers.ListField(child=serializers.CharField())
