"""The body of ``POST /v1/sql`` and the shape of its answer."""

from collections.abc import Mapping
from typing import Any, Final

from django.conf import settings
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from platform_site.lib.api import StrictSerializer
from sqlgateway.execution.requests import ISOLATIONS

# These are by far the most frequent bodies, and DRF takes longer over them than PostgreSQL.
PLAIN: Final = (frozenset({"query"}), frozenset({"query", "params"}))


class StatementField(serializers.CharField):
    """A text for PostgreSQL, as it was sent: blanks at its ends count for error positions."""

    def __init__(self, **options: Any) -> None:
        super().__init__(trim_whitespace=False, **options)

    def to_internal_value(self, data: Any) -> str:
        """Take strings alone: DRF would make one of a number."""
        if not isinstance(data, str):
            self.fail("invalid")
        return data


@extend_schema_field({"type": "array", "items": {"description": "Any JSON value."}})
class ParamsField(serializers.ListField):
    """Parameters: any JSON values."""

    child = serializers.JSONField(allow_null=True)

    def run_child_validation(self, data: Any) -> Any:
        """Take the values as they are."""
        return data


class QuerySerializer(StrictSerializer):
    """One statement of ``queries``."""

    query = StatementField(help_text="One statement; parameters are $1, $2 and so on.")
    params = ParamsField(required=False, default=list)


class SqlSerializer(StrictSerializer):
    """A text, or statements that run as one transaction."""

    query = StatementField(
        required=False,
        help_text="One or more statements; with `params` exactly one. "
        "Several without a transaction of their own run as one.",
    )
    params = ParamsField(
        required=False, help_text="Values of $1, $2 and so on, as text of the inferred type."
    )
    queries = QuerySerializer(
        many=True, required=False, help_text="Statements that run as one transaction."
    )
    rows = serializers.ChoiceField(choices=["objects", "arrays"], default="objects")
    read_only = serializers.BooleanField(  # type: ignore[assignment]  # a field of that name
        default=False, help_text="Run as a role that can change nothing."
    )
    isolation = serializers.ChoiceField(choices=list(ISOLATIONS), required=False)
    timeout_ms = serializers.IntegerField(required=False, min_value=1)
    max_rows = serializers.IntegerField(required=False, min_value=1)
    numeric = serializers.ChoiceField(
        choices=["string", "number"], default="string", help_text="How numeric values are written."
    )
    explain = serializers.BooleanField(
        default=False, help_text="Give the plan as JSON instead of running the statement."
    )

    def to_internal_value(self, data: Any) -> Any:
        """Validate, and hold the request to the limits."""
        given = super().to_internal_value(data)
        if ("query" in given) == ("queries" in given):
            raise serializers.ValidationError(
                {"query": ["Send either query or queries."]}, code="required"
            )
        if "queries" in given and "params" in given:
            raise serializers.ValidationError({"params": ["Each of queries has its own."]})
        statements = given.get("queries", [])
        if "queries" in given and not 1 <= len(statements) <= settings.SQL.max_statements:
            raise serializers.ValidationError(
                {"queries": [f"1 to {settings.SQL.max_statements} statements."]}
            )
        for name in ("timeout_ms", "max_rows"):
            most = getattr(settings.SQL, name)
            if given.get(name, 0) > most:
                raise serializers.ValidationError({name: [f"At most {most}."]})
        return given


class ColumnSerializer(serializers.Serializer[Any]):
    """A column of a result."""

    name = serializers.CharField()
    type = serializers.CharField(help_text="As in pg_type; arrays as `int8[]`.")
    oid = serializers.IntegerField()
    key = serializers.CharField(
        required=False, help_text="What objects call it, where the name is there twice."
    )


class ResultSerializer(serializers.Serializer[Any]):
    """What one statement answered."""

    columns = ColumnSerializer(many=True)
    rows = serializers.ListField(
        child=serializers.JSONField(), help_text="Objects, or arrays if so asked."
    )
    row_count = serializers.IntegerField(help_text="Rows given or changed.")
    command = serializers.CharField(help_text="As `SELECT` or `CREATE TABLE`.")
    truncated = serializers.BooleanField(help_text="Whether there were more rows than the caps.")


class NoticeSerializer(serializers.Serializer[Any]):
    """What the server said beside the result."""

    severity = serializers.CharField()
    sqlstate = serializers.CharField()
    message = serializers.CharField()


class StatsSerializer(serializers.Serializer[Any]):
    """Figures of the request."""

    elapsed_ms = serializers.FloatField()
    bytes = serializers.IntegerField(help_text="Of the rows.")


class SqlAnswerSerializer(ResultSerializer):
    """The last statement's result, and with several statements all of them in `results`."""

    results = ResultSerializer(many=True, required=False)
    notices = NoticeSerializer(many=True)
    stats = StatsSerializer()
    request_id = serializers.CharField()


def is_plain(body: Mapping[str, Any]) -> bool:
    """Say whether a body is a text, perhaps with parameters, and needs no serializer."""
    if body.keys() not in PLAIN or not isinstance(body.get("params", []), list):
        return False
    return isinstance(body["query"], str) and body["query"] != ""
