"""Environments in JSON."""

from typing import Any, Final

from drf_spectacular.utils import extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from common.api.views import StrictSerializer
from common.names import NameField
from environments.environments import SLUG, SLUG_RULE
from environments.models import Environment, Organization, RequestHour
from environments.tenant_data import DATABASE_ERROR, DATABASE_PROGRESS, DATABASE_STATE

DATABASE_STATES: Final = ("none", "ready", "moving", "copying", "failed")


class EnvironmentSerializer(serializers.Serializer[Environment]):
    """An environment: ``id`` is its immutable slug, ``name`` its label."""

    id = serializers.CharField(source="slug")
    name = serializers.CharField()
    built_in = serializers.BooleanField(source="is_built_in")
    created_at = serializers.DateTimeField()
    database_state = serializers.SerializerMethodField()
    database_error = serializers.SerializerMethodField()

    @extend_schema_field(
        {
            "type": "string",
            "enum": list(DATABASE_STATES),
            "description": "none: created at the first query. copying: a clone in progress, whose "
            "SQL answers 503 until it is ready. failed: a clone that could not be copied.",
        }
    )
    def get_database_state(self, environment: Environment) -> str:
        """Ask the layer of the databases."""
        return DATABASE_STATE(environment.pk)

    @extend_schema_field(
        {
            "type": "string",
            "nullable": True,
            "description": "Why the clone failed; null if it did not. Of an object that could not "
            "be restored, its name and PostgreSQL's message.",
        }
    )
    def get_database_error(self, environment: Environment) -> str | None:
        """Ask the layer of the databases."""
        return DATABASE_ERROR(environment.pk)


class EnvironmentDetailSerializer(EnvironmentSerializer):
    """One environment, with the progress of its copy."""

    database_progress = serializers.SerializerMethodField()

    @extend_schema_field(
        {
            "type": "number",
            "nullable": True,
            "description": "The copied part of a clone's data, from 0 to 1, estimated; null if "
            "no copy is in progress.",
        }
    )
    def get_database_progress(self, environment: Environment) -> float | None:
        """Ask the layer of the databases."""
        return DATABASE_PROGRESS(environment.pk)


class ContentsSerializer(serializers.Serializer[Any]):
    """The contents of an environment; null if they cannot be counted at the moment.

    objects: stored by this platform, not by origins.
    """

    tables = serializers.IntegerField(allow_null=True)
    database_bytes = serializers.IntegerField(allow_null=True)
    buckets = serializers.IntegerField(allow_null=True)
    objects = serializers.IntegerField(allow_null=True)
    object_bytes = serializers.IntegerField(allow_null=True)
    access_keys = serializers.IntegerField(allow_null=True)


class EnvironmentRefSerializer(serializers.Serializer[Any]):
    """An environment inside other responses."""

    id = serializers.CharField()
    name = serializers.CharField()


class LabelField(NameField):
    """A name: 1 to 100 characters, trimmed."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=100, **options)


@extend_schema_serializer(many=False)
class OrganizationSerializer(serializers.Serializer[Organization]):
    """The caller's organization.

    deletion_due_at: when it will be deleted; null unless that was requested.
    """

    id = serializers.IntegerField()
    name = serializers.CharField()
    created_at = serializers.DateTimeField()
    deletion_due_at = serializers.DateTimeField(allow_null=True)
    deletion_requested_by = serializers.CharField()


class OrganizationUpdateSerializer(StrictSerializer):
    """Fields that can be changed."""

    name = NameField(max_length=200)


class EnvironmentCreateSerializer(StrictSerializer):
    """The environment to create; the name defaults to the id.

    ``name`` alone is enough: the id is then the name.
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
        # ``from`` is a keyword, so it cannot be an attribute.
        copied = serializers.CharField(
            max_length=100,
            required=False,
            help_text="Id or name of an environment whose data is copied.",
        )
        return {**super().get_fields(), "from": copied}


class EnvironmentUpdateSerializer(StrictSerializer):
    """Fields that can be changed."""

    name = LabelField()


class RequestHourSerializer(serializers.Serializer[RequestHour]):
    """The requests of one hour; hours without requests are omitted."""

    hour = serializers.DateTimeField()
    requests = serializers.IntegerField()
    refused = serializers.IntegerField(help_text="Answers of 400 to 499.")
    failed = serializers.IntegerField(help_text="Answers of 500 and above.")


@extend_schema_serializer(many=False)
class RequestActivitySerializer(serializers.Serializer[Any]):
    """The organization's API requests of the last day, with their sums."""

    since = serializers.DateTimeField()
    requests = serializers.IntegerField()
    refused = serializers.IntegerField()
    failed = serializers.IntegerField()
    hours = RequestHourSerializer(many=True)
