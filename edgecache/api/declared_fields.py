"""Fields of serializers that are made from a declaration in ``edgecache.protocol.resources``.

A serializer has ``options = OptionsOf(BucketOptions)`` among its fields, and ``DeclaredSerializer``
before its other bases.
"""

from typing import Any

from msgspec import NODEFAULT, Struct, inspect
from rest_framework import serializers

from common.api.views import StrictSerializer
from common.names import NameField

Fields = dict[str, serializers.Field[Any, Any, Any, Any]]


class OptionsOf(serializers.Field[Any, Any, Any, Any]):
    """The fields of a declaration, in their order, at this position of a ``DeclaredSerializer``.

    sets_defaults: a request for a new row, which gets the defaults of absent fields.
    """

    def __init__(self, declaration: type[Struct], *, sets_defaults: bool = False) -> None:
        super().__init__()
        self.declaration = declaration
        self.sets_defaults = sets_defaults

    def fields(self, *, is_request: bool) -> Fields:
        """Return the fields. is_request: with bounds, and optional if they have a default."""
        declared = inspect.type_info(self.declaration)
        if not isinstance(declared, inspect.StructType):
            raise TypeError(self.declaration)
        return {
            each.name: _field(
                each.type, is_request=is_request, **(self._presence(each) if is_request else {})
            )
            for each in declared.fields
        }

    def _presence(self, option: inspect.Field) -> dict[str, Any]:
        if option.default is NODEFAULT:
            return {}
        if self.sets_defaults and option.default:
            return {"default": option.default}
        return {"required": False, **({"allow_blank": True} if option.default == "" else {})}


class DeclaredSerializer(serializers.Serializer[Any]):
    """A serializer whose ``OptionsOf`` are replaced with their fields."""

    def get_fields(self) -> Fields:
        """Return all fields in the order of the class."""
        fields: Fields = {}
        for name, field in super().get_fields().items():
            if isinstance(field, OptionsOf):
                fields |= field.fields(is_request=isinstance(self, StrictSerializer))
            else:
                fields[name] = field
        return fields


def _field(
    kind: inspect.Type, *, is_request: bool = False, is_name: bool = False, **options: Any
) -> Any:
    bounds: dict[str, Any] = {}
    field: type[serializers.Field[Any, Any, Any, Any]]
    match kind:
        case inspect.Metadata(type=inner, extra_json_schema=schema, extra=extra):
            options["help_text"] = (schema or {}).get("description", "")
            options["is_name"] = bool(extra)
            return _field(inner, is_request=is_request, **options)
        case inspect.BoolType():
            field = serializers.BooleanField
        case inspect.IntType(ge=minimum, le=maximum):
            field, bounds = serializers.IntegerField, {"min_value": minimum, "max_value": maximum}
        case inspect.StrType(max_length=length):
            field = NameField if is_name and is_request else serializers.CharField
            bounds = {"max_length": length}
        case inspect.LiteralType(values=values):
            field = serializers.ChoiceField if is_request else serializers.CharField
            bounds = {"choices": values}
        case inspect.VarTupleType(item_type=item, max_length=length):
            field, bounds = serializers.ListField, {"max_length": length}
            options["child"] = _field(item, is_request=is_request)
        case _:
            raise TypeError(f"no field is known for {kind}")
    return field(**options, **(bounds if is_request else {}))
