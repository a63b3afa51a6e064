"""The OpenAPI description of every operation, built from its view and its ``openapi.py``."""

from typing import Any, Final, Literal

from drf_spectacular.drainage import warn
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema

from common.api.views import ApiView, StrictSerializer
from common.api.viewsets import PlatformViewSet
from common.errors import ChangedSinceRead
from common.etags import HEADER
from common.openapi import operations, problems
from common.openapi.operations import Operation
from common.permissions import AccessRule

Direction = Literal["request", "response"]
ETAG: Final = "The version of the fields that can be changed."
IF_MATCH: Final = (
    "The `ETag` that was read: where these fields were changed since, the answer is 409 "
    "`changed_since_read`, and nothing is changed. `*`: any version."
)


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # untyped hook
    """The security scheme in OpenAPI."""

    target_class = "common.api.authentication.PrincipalAuthentication"
    name = "bearer"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        """Return the security scheme object."""
        return {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}


class Schema(AutoSchema):
    """Descriptions of operations from ``openapi.py`` and from the view's tables."""

    def get_operation(self, *args: Any, **kwargs: Any) -> dict[str, Any] | None:
        """Return the operation with its tag, its permission, its problems and its examples."""
        found: dict[str, Any] | None = super().get_operation(*args, **kwargs)
        access = self._access()
        if found is None or access is None:
            return found
        if access.kind == "permission":
            text = f"Takes the permission `{access.resource}:{access.action}`."
            found["description"] = "\n\n".join(filter(None, [found.get("description"), text]))
        key = f"{self.method} {self.path}"
        described = operations.find(type(self.view).__module__, key)
        if described is None:
            warn(f"{key} is in no openapi.py")
            return found
        found["tags"] = [described.tag]
        _add_path_schemas(found, described)
        _add_examples(found, described)
        common = problems.common(
            access,
            has_body="requestBody" in found,
            has_path_parameter="{" in self.path,
            has_cursor=any(each["name"] == "cursor" for each in found.get("parameters", ())),
        )
        if isinstance(self.view, PlatformViewSet) and self.view.has_version():
            _add_version(found, takes_one=self.view.takes_version())
            common |= {ChangedSinceRead} if self.view.takes_version() else set()
        found["responses"] |= problems.responses(common | {*described.problems})
        return found

    def get_auth(self) -> list[dict[str, list[str]]]:
        """Return no authentication for public operations."""
        access = self._access()
        return [] if access is not None and access.kind == "public" else super().get_auth()

    def get_override_parameters(self) -> list[Any]:
        """Return none: views declare their parameters."""
        view = self.view
        if isinstance(view, PlatformViewSet) and view.action in view.query_serializers:
            return [view.query_serializers[view.action]]
        return []

    def get_request_serializer(self) -> Any:
        """Return the body's serializer from the viewset's table, if there is one."""
        if isinstance(self.view, PlatformViewSet):
            return self.view.request_serializers.get(self.view.action)
        return super().get_request_serializer()

    def get_response_serializers(self) -> Any:
        """Return the response's serializer and status from the viewset's tables."""
        if isinstance(self.view, PlatformViewSet):
            return {self.view.success_status(): self.view.response_serializer()}
        return super().get_response_serializers()

    def get_serializer_name(self, serializer: Any, direction: Direction) -> str:
        """Return the component's name; drf-spectacular adds ``Request`` for bodies."""
        name: str = type(serializer).__name__.removesuffix("Serializer")
        return name.removesuffix("Request") if direction == "request" else name

    def get_paginated_name(self, serializer_name: str) -> str:
        """Return the component's name of one page."""
        return f"{serializer_name}Page"

    def _access(self) -> AccessRule | None:
        view = self.view
        return view.access_for(self.method) if isinstance(view, ApiView) else None

    def _map_basic_serializer(self, serializer: Any, direction: Direction) -> dict[str, Any]:
        """Set additionalProperties to false for bodies that refuse unknown fields."""
        mapped: Any = super()._map_basic_serializer  # untyped library
        schema: dict[str, Any] = mapped(serializer, direction)
        if isinstance(serializer, StrictSerializer):
            schema["additionalProperties"] = False
        return schema

    def _map_serializer_field(
        self, field: Any, direction: Direction, bypass_extensions: bool = False
    ) -> dict[str, Any] | None:
        """Omit a default that must not be sent; add the minimum of numbers in responses."""
        mapped: Any = super()._map_serializer_field  # untyped library
        schema: dict[str, Any] | None = mapped(field, direction, bypass_extensions)
        if schema is None:
            return None
        if schema.get("default") == "" and not getattr(field, "allow_blank", False):
            del schema["default"]
        types = schema.get("type", ())
        if direction == "response" and {"integer", "number"} & {
            *([types] if isinstance(types, str) else types)
        }:
            # Numbers in responses are counts, sizes, shares, durations and times.
            schema.setdefault("minimum", 0)
        return schema


def _add_path_schemas(operation: dict[str, Any], described: Operation) -> None:
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "path" and parameter["name"] in described.path:
            parameter["schema"] = dict(described.path[parameter["name"]])


def _add_version(operation: dict[str, Any], *, takes_one: bool) -> None:
    """Add the response's ETag and, for an operation that takes one, the header If-Match."""
    success = operation["responses"][min(operation["responses"])]
    success["headers"] = {"ETag": {"schema": {"type": "string"}, "description": ETAG}}
    if takes_one:
        parameter = {"name": HEADER, "in": "header", "schema": {"type": "string"}}
        operation.setdefault("parameters", []).append(parameter | {"description": IF_MATCH})


def _add_examples(operation: dict[str, Any], described: Operation) -> None:
    if described.request is not None:
        (body,) = operation["requestBody"]["content"].values()
        body["example"] = described.request
    streams = {media: {"schema": dict(shape)} for media, shape in described.streams.items()}
    status = min(operation["responses"])
    if described.response is not None:
        (answer,) = operation["responses"][status]["content"].values()
        answer["example"] = described.response
        operation["responses"][status]["content"] |= streams
    elif streams:
        operation["responses"][status]["content"] = streams
