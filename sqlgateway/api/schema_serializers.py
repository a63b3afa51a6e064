"""The answers of ``/v1/sql/schema`` and of an environment's extensions."""

from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from common.api.views import StrictSerializer
from sqlgateway.schema.extensions import ALLOWED

Shape = serializers.Serializer[Any]


def _optional(help_text: str = "") -> serializers.CharField:
    return serializers.CharField(allow_null=True, help_text=help_text)


class SchemaQuerySerializer(StrictSerializer):
    """What of the database is asked for."""

    schema = serializers.CharField(
        required=False, max_length=63, help_text="Only what is in this schema; without it, in all."
    )


class DatabaseShape(Shape):
    """The database as a whole."""

    size_bytes = serializers.IntegerField()
    server_version = serializers.CharField(help_text="PostgreSQL's own.")


class NamespaceShape(Shape):
    """A schema."""

    name = serializers.CharField()
    comment = _optional()


class DomainConstraintShape(Shape):
    """A CHECK of a domain."""

    domain = serializers.CharField(help_text="The domain that has it: this one, or one under it.")
    name = serializers.CharField()
    definition = serializers.CharField(help_text="As in SQL.")


class TableColumnShape(Shape):
    """A column that the caller may read or write, with what its domain says of it."""

    name = serializers.CharField()
    type = serializers.CharField(help_text="As in SQL: `character varying(20)`.")
    is_nullable = serializers.BooleanField()
    default = _optional("The expression: the column's own, or else its domain's.")
    domain_constraints = DomainConstraintShape(
        many=True, help_text="Those of the column's type, where that is a domain."
    )
    generated = _optional("The expression of a generated column.")
    identity = serializers.ChoiceField(choices=["always", "by_default"], allow_null=True)
    comment = _optional()


class ReferenceShape(Shape):
    """What a foreign key refers to."""

    schema = serializers.CharField()
    table = serializers.CharField()
    columns = serializers.ListField(child=serializers.CharField())


class ConstraintShape(Shape):
    """A constraint of a table."""

    name = serializers.CharField()
    kind = serializers.ChoiceField(
        choices=["primary_key", "unique", "foreign_key", "check", "exclusion"]
    )
    definition = serializers.CharField(help_text="As in SQL.")
    columns = serializers.ListField(child=serializers.CharField())
    references = ReferenceShape(allow_null=True)


class IndexShape(Shape):
    """An index of a table."""

    name = serializers.CharField()
    definition = serializers.CharField(help_text="The statement that creates it.")
    is_unique = serializers.BooleanField()
    is_primary = serializers.BooleanField()
    is_valid = serializers.BooleanField(  # type: ignore[assignment]  # a method of that name
        help_text="False while it is built concurrently."
    )
    size_bytes = serializers.IntegerField()


class TableShape(Shape):
    """A table or view on which the caller has a privilege."""

    schema = serializers.CharField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(
        choices=["table", "partitioned_table", "view", "materialized_view", "foreign_table"]
    )
    comment = _optional()
    estimated_rows = serializers.IntegerField(
        allow_null=True, help_text="As of the last ANALYZE; null before the first."
    )
    size_bytes = serializers.IntegerField(help_text="With indexes and large values.")
    definition = _optional("The query of a view.")
    columns = TableColumnShape(many=True)
    constraints = ConstraintShape(many=True)
    indexes = IndexShape(many=True)


class FunctionShape(Shape):
    """A function that the caller may call."""

    schema = serializers.CharField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=["function", "procedure", "aggregate", "window"])
    arguments = serializers.CharField(allow_blank=True, help_text="As in SQL, with defaults.")
    returns = _optional("Null for a procedure.")
    language = serializers.CharField()
    is_security_definer = serializers.BooleanField()
    comment = _optional()


class AttributeShape(Shape):
    """A member of a composite type."""

    name = serializers.CharField()
    type = serializers.CharField()


class TypeShape(Shape):
    """A type of the tenant's own."""

    schema = serializers.CharField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=["enum", "domain", "range", "composite"])
    labels = serializers.ListField(
        child=serializers.CharField(allow_blank=True), allow_null=True, help_text="Of an enum."
    )
    base_type = _optional("Of a domain.")
    default = _optional("Of a domain: the expression.")
    is_nullable = serializers.BooleanField(allow_null=True, help_text="Of a domain.")
    constraints = DomainConstraintShape(
        many=True, allow_null=True, help_text="Of a domain, with those of the domains under it."
    )
    columns = AttributeShape(many=True, allow_null=True, help_text="Of a composite type.")
    comment = _optional()


class InstalledExtensionShape(Shape):
    """An installed extension."""

    name = serializers.CharField()
    version = serializers.CharField()
    schema = serializers.CharField()


@extend_schema_serializer(many=False)
class SchemaSerializer(Shape):
    """The database's schema as the caller's role may see it."""

    database = DatabaseShape()
    schemas = NamespaceShape(many=True)
    tables = TableShape(many=True)
    functions = FunctionShape(many=True)
    types = TypeShape(many=True)
    extensions = InstalledExtensionShape(many=True)
    truncated = serializers.BooleanField(
        help_text="True if a limit cut a list: ask for one schema at a time."
    )


class ExtensionSerializer(Shape):
    """An extension of the list, installed or not."""

    name = serializers.CharField()
    version = serializers.CharField(help_text="The installed one, or what would be installed.")
    is_installed = serializers.BooleanField()
    schema = _optional("Where it is installed.")
    comment = _optional()


@extend_schema_serializer(many=False)
class ExtensionListSerializer(Shape):
    """All extensions of the list."""

    results = ExtensionSerializer(many=True)


class ExtensionInstallSerializer(StrictSerializer):
    """The extension to install."""

    name = serializers.ChoiceField(choices=list(ALLOWED))
