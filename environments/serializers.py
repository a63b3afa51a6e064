"""Environments in JSON."""

from collections.abc import Callable
from typing import Any, Final

from django.conf import settings
from django.utils.module_loading import import_string
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from environments.environments import SLUG, SLUG_RULE
from environments.models import Environment
from platform_site.lib.api import StrictSerializer

DATABASE_STATES: Final = ("none", "ready", "moving", "copying", "failed")


class EnvironmentSerializer(serializers.Serializer[Environment]):
    """An environment: ``id`` is its immutable slug, ``name`` its label."""

    id = serializers.CharField(source="slug")
    name = serializers.CharField()
    built_in = serializers.BooleanField(source="is_built_in")
    created_at = serializers.DateTimeField()


class EnvironmentDetailSerializer(EnvironmentSerializer):
    """One environment, with the state of its database."""

    database_state = serializers.SerializerMethodField()

    @extend_schema_field(
        {
            "type": "string",
            "enum": list(DATABASE_STATES),
            "description": "none: made at the first query. copying: a clone that is being filled; "
            "its SQL answers 503 until it is ready. failed: a clone that could not be filled.",
        }
    )
    def get_database_state(self, environment: Environment) -> str:
        """Ask the layer that holds the databases."""
        state: Callable[[int], str] = import_string(settings.DATABASE_STATE)
        return state(environment.pk)


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

    ``name`` alone is enough: the id is then the name itself. ``from`` is no name for an attribute.
    """

    id = serializers.RegexField(
        rf"\A{SLUG.pattern}\Z",
        max_length=63,
        required=False,
        error_messages={"invalid": SLUG_RULE},
    )
    name = LabelField(required=False)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """Return the fields, with the environment to copy from."""
        copied = serializers.CharField(
            max_length=100,
            required=False,
            help_text="Id or name of an environment whose data is copied.",
        )
        return {**super().get_fields(), "from": copied}


class EnvironmentUpdateSerializer(StrictSerializer):
    """What may change."""

    name = LabelField()
