"""Environments in JSON."""

from typing import Any

from rest_framework import serializers

from environments.environments import SLUG, SLUG_RULE
from environments.models import Environment
from platform_site.lib.api import StrictSerializer


class EnvironmentSerializer(serializers.Serializer[Environment]):
    """An environment: ``id`` is its immutable slug, ``name`` its label."""

    id = serializers.CharField(source="slug")
    name = serializers.CharField()
    built_in = serializers.BooleanField(source="is_built_in")
    created_at = serializers.DateTimeField()


class EnvironmentRefSerializer(serializers.Serializer[Any]):
    """An environment inside other answers."""

    id = serializers.CharField()
    name = serializers.CharField()


class LabelField(serializers.CharField):
    """A name: 1 to 100 characters, trimmed."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=100, **options)


class EnvironmentCreateSerializer(StrictSerializer):
    """What makes an environment; the name is as the id when it is left out.

    ``name`` alone is enough: the id is then the name itself.
    """

    id = serializers.RegexField(
        rf"\A{SLUG.pattern}\Z",
        max_length=63,
        required=False,
        error_messages={"invalid": SLUG_RULE},
    )
    name = LabelField(required=False)


class EnvironmentUpdateSerializer(StrictSerializer):
    """What may change."""

    name = LabelField()
