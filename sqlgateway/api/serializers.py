"""The body of ``POST /v1/sql`` and its answer."""

from collections.abc import Mapping
from typing import Any, Final, cast

from django.conf import settings
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from common.api.views import StrictSerializer
from sqlgateway.run import results
from sqlgateway.run.requests import ISOLATIONS

FORMATS: Final = ("json", "ndjson", "csv", "arrow")
# The most frequent bodies. For these, DRF's validation would take longer than PostgreSQL.
PLAIN: Final = (frozenset({"query"}), frozenset({"query", "params"}))


class StatementField(serializers.CharField):
    """A text for PostgreSQL, unchanged: error positions count leading blanks."""

    def __init__(self, **options: Any) -> None:
        super().__init__(trim_whitespace=False, **options)

    def to_internal_value(self, data: Any) -> str:
        """Accept strings only: DRF would convert a number."""
        if not isinstance(data, str):
            self.fail("invalid")
        return data


@extend_schema_field({"type": "array", "items": {"description": "Any JSON value."}})
class ParamsField(serializers.ListField):
    """Parameters: any JSON values."""

    child = serializers.JSONField(allow_null=True)

    def run_child_validation(self, data: Any) -> Any:
        """Return the values unchanged."""
        return data


MAX_TIMEOUT_MS: Final = max(settings.SQL.timeout_ms, settings.SQL.export_timeout_s * 1000)


@extend_schema_field({"type": "integer", "minimum": 1, "maximum": MAX_TIMEOUT_MS})
class TimeoutField(serializers.IntegerField):
    """Milliseconds, at most what the installation allows for the answer's form."""


@extend_schema_field({"type": "integer", "minimum": 1, "maximum": settings.SQL.max_rows})
class MaxRowsField(serializers.IntegerField):
    """A number of rows, at most what the installation allows."""


@extend_schema_field({"oneOf": [{"type": "boolean"}, {"type": "string", "enum": ["analyze"]}]})
class ExplainField(serializers.Field[Any, Any, Any, Any]):
    """``true`` or ``"analyze"``."""

    def to_internal_value(self, data: Any) -> bool | str:
        """Accept exactly these values: ``1`` is not true."""
        if isinstance(data, bool) or data == "analyze":
            return cast(bool | str, data)
        raise serializers.ValidationError('Send true, false or "analyze".')

    def to_representation(self, value: Any) -> Any:
        """Return the value unchanged."""
        return value


class FormatSerializer(StrictSerializer):
    """How a statement's rows are written. It can be set for all and for each of ``queries``."""

    rows = serializers.ChoiceField(
        choices=["objects", "arrays"],
        required=False,
        help_text="`objects` if not given. Refused for CSV and Arrow, as are `numeric`, `json` and "
        "`values`.",
    )
    max_rows = MaxRowsField(required=False, min_value=1)
    numeric = serializers.ChoiceField(
        choices=["string", "number"],
        required=False,
        help_text="How numeric values are written; `string` if not given.",
    )
    json = serializers.ChoiceField(
        choices=["value", "string"],
        required=False,
        help_text="How values of json and jsonb are written: `value` if not given; with `string` "
        "as PostgreSQL's text, in which NULL and the JSON value null differ, and which no JSON "
        "parser changes.",
    )
    values = serializers.ChoiceField(
        choices=["json", "text"],
        required=False,
        help_text="How values of all types are written: `json` if not given, by their type; with "
        "`text` as strings with PostgreSQL's text, and booleans as `true` and `false`. It outranks "
        "`numeric` and `json`.",
    )
    explain = ExplainField(
        required=False,
        help_text="Return the plan as JSON instead of running the statement; with `analyze` run "
        "it and measure each step.",
    )

    def validate_max_rows(self, value: int) -> int:
        """Refuse a number of rows above the limit: the result would be truncated at the limit."""
        if value > settings.SQL.max_rows:
            raise serializers.ValidationError(f"At most {settings.SQL.max_rows}.")
        return value


class QuerySerializer(FormatSerializer):
    """One statement of ``queries``; its options outrank the request's."""

    query = StatementField(help_text="One statement; parameters are $1, $2 and so on.")
    params = ParamsField(required=False, default=list)


class SqlSerializer(FormatSerializer):
    """A text, or statements that run as one transaction."""

    query = StatementField(
        required=False,
        help_text="One or more statements; with `params` exactly one. "
        "Several run as one transaction unless they contain their own.",
    )
    params = ParamsField(
        required=False, help_text="Values of $1, $2 and so on, as text of the inferred type."
    )
    queries = QuerySerializer(
        many=True, required=False, help_text="Statements that run as one transaction."
    )
    read_only = serializers.BooleanField(  # type: ignore[assignment]  # a field of that name
        default=False, help_text="Run as the reader role, which cannot write."
    )
    isolation = serializers.ChoiceField(choices=list(ISOLATIONS), required=False)
    timeout_ms = TimeoutField(required=False, min_value=1)
    format = serializers.ChoiceField(  # a field of that name
        choices=list(FORMATS), required=False, help_text="The answer's form; outranks `Accept`."
    )

    def to_internal_value(self, data: Any) -> Any:
        """Validate the request, with its limits."""
        given = super().to_internal_value(data)
        if ("query" in given) == ("queries" in given):
            raise serializers.ValidationError(
                {"query": ["Send either query or queries."]}, code="required"
            )
        if "queries" in given and "params" in given:
            raise serializers.ValidationError({"params": ["Each of queries has its own."]})
        statements = given.get("queries", [])
        if "queries" in given and not 1 <= len(statements) <= results.MAX_STATEMENTS:
            raise serializers.ValidationError(
                {"queries": [f"1 to {results.MAX_STATEMENTS} statements."]}
            )
        return given


class ColumnSerializer(serializers.Serializer[Any]):
    """A column of a result."""

    name = serializers.CharField()
    type = serializers.CharField(help_text="As in pg_type; arrays as `int8[]`.")
    oid = serializers.IntegerField()
    key = serializers.CharField(
        required=False, help_text="The name in objects, if two columns share one."
    )


class ResultSerializer(serializers.Serializer[Any]):
    """The result of one statement."""

    columns = ColumnSerializer(many=True)
    rows = serializers.ListField(
        child=serializers.JSONField(), help_text="Objects, or arrays with `rows: arrays`."
    )
    row_count = serializers.IntegerField(help_text="Rows returned or changed.")
    command = serializers.CharField(help_text="As `SELECT` or `CREATE TABLE`.")
    plan = serializers.JSONField(required=False, help_text="With `explain`: PostgreSQL's plan.")
    truncated = serializers.BooleanField(help_text="True if rows are missing.")


class NoticeSerializer(serializers.Serializer[Any]):
    """A message of the server beside the result, with the members that an error has."""

    severity = serializers.CharField()
    sqlstate = serializers.CharField()
    message = serializers.CharField()
    detail = serializers.CharField(required=False)
    hint = serializers.CharField(required=False)
    statement = serializers.IntegerField(required=False, help_text="Its number in `queries`.")
    position = serializers.IntegerField(
        required=False, help_text="In characters of the text, from 1; `line` and `column`, too."
    )
    line = serializers.IntegerField(required=False)
    column = serializers.IntegerField(required=False)
    schema = serializers.CharField(required=False)
    table = serializers.CharField(required=False)
    column_name = serializers.CharField(required=False)
    constraint = serializers.CharField(required=False)
    data_type = serializers.CharField(required=False)


class StatsSerializer(serializers.Serializer[Any]):
    """Figures of the request."""

    elapsed_ms = serializers.FloatField()
    bytes = serializers.IntegerField(help_text="Of the rows, or of an imported body.")


class SqlAnswerSerializer(ResultSerializer):
    """The last statement's result, and with several statements all of them in `results`."""

    results = ResultSerializer(many=True, required=False)
    notices = NoticeSerializer(many=True)
    stats = StatsSerializer()
    request_id = serializers.CharField()


class ImportQuerySerializer(StrictSerializer):
    """The query string of an import."""

    table = serializers.CharField(
        help_text='The table, with its schema or without: `items`, `public."Line items"`.'
    )
    columns = serializers.CharField(
        required=False,
        help_text='The columns of the body: `id,"Full name"`. With `header=match` the first line '
        "must name them in any order; otherwise they are in the order of the body.",
    )
    skip = serializers.CharField(
        required=False, help_text="Columns of the body that are not imported: `id,notes`."
    )
    header = serializers.ChoiceField(
        choices=["match", "true", "false"],
        default="match",
        help_text="The first line: says which column is which, is skipped, or is a row. Values of "
        "generated columns are not imported.",
    )
    delimiter = serializers.ChoiceField(
        choices=[",", ";", "\t", "|"], default=",", help_text="Between the values."
    )


class ImportSerializer(serializers.Serializer[Any]):
    """What an import did."""

    command = serializers.CharField(help_text="`COPY`.")
    row_count = serializers.IntegerField(help_text="Rows imported.")
    notices = NoticeSerializer(many=True)
    stats = StatsSerializer()
    request_id = serializers.CharField()


def is_plain(body: Mapping[str, Any]) -> bool:
    """True if a body has only a text and optional parameters, and so needs no serializer."""
    if body.keys() not in PLAIN or not isinstance(body.get("params", []), list):
        return False
    return isinstance(body["query"], str) and body["query"] != ""
