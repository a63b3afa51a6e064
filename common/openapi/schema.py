"""The OpenAPI description of every operation, built from its viewset."""

from typing import Any, Final, Literal

from drf_spectacular.drainage import warn
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema

from common.api.views import StrictSerializer
from common.api.viewsets import PlatformViewSet
from common.errors import ChangedSinceRead, PlatformError
from common.etags import HEADER
from common.openapi import examples, problems
from common.openapi.tags import TAGS
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
    """Descriptions of operations from what their viewsets declare."""

    def get_operation(self, *args: Any, **kwargs: Any) -> dict[str, Any] | None:
        """Return the operation with its permission, its errors and its recorded example."""
        found: dict[str, Any] | None = super().get_operation(*args, **kwargs)
        if found is None:
            return found
        access = self._access()
        if access.kind == "permission":
            text = f"Takes the permission `{access.resource}:{access.action}`."
            found["description"] = "\n\n".join(filter(None, [found.get("description"), text]))
        for parameter in found.get("parameters", ()):
            if parameter["in"] == "path" and parameter["name"] in self._viewset.path_schemas:
                parameter["schema"] = dict(self._viewset.path_schemas[parameter["name"]])
        examples.add(found, f"{self.method} {self.path}")
        errors = problems.common(
            access,
            has_body="requestBody" in found,
            has_path_parameter="{" in self.path,
            has_cursor=any(each["name"] == "cursor" for each in found.get("parameters", ())),
        )
        if self._viewset.has_version():
            _add_version(found, takes_one=self._viewset.takes_version())
            errors |= {ChangedSinceRead} if self._viewset.takes_version() else set()
        found["responses"] |= problems.responses(errors | self._own_errors())
        return found

    def _own_errors(self) -> set[type[PlatformError]]:
        view = self._viewset
        found = {*view.shared_errors, *view.errors.get(view.action, ())}
        is_of_one = f"{{{view.lookup_url_kwarg}}}" in self.path
        return found | {view.not_found} if is_of_one else found

    @property
    def _viewset(self) -> PlatformViewSet:
        if not isinstance(self.view, PlatformViewSet):
            raise TypeError(f"{type(self.view).__name__} is no PlatformViewSet")
        return self.view

    def get_tags(self) -> list[str]:
        """Return the viewset's tag."""
        if self._viewset.tag not in TAGS:
            warn(f"{type(self._viewset).__name__} has no tag of common.openapi.tags")
        return [self._viewset.tag]

    def get_auth(self) -> list[dict[str, list[str]]]:
        """Return no authentication for public operations."""
        return [] if self._access().kind == "public" else super().get_auth()

    def get_override_parameters(self) -> list[Any]:
        """Return the query's serializer from the viewset's table, if there is one."""
        filters = self._viewset.query_serializers.get(self._viewset.action)
        return [] if filters is None else [filters]

    def get_request_serializer(self) -> Any:
        """Return the body's serializer from the viewset's table, if there is one."""
        return self._viewset.request_serializers.get(self._viewset.action)

    def get_response_serializers(self) -> Any:
        """Return the response's serializer and status from the viewset's tables."""
        return {self._viewset.success_status(): self._viewset.response_serializer()}

    def get_serializer_name(self, serializer: Any, direction: Direction) -> str:
        """Return the component's name; drf-spectacular adds ``Request`` for bodies."""
        name: str = type(serializer).__name__.removesuffix("Serializer")
        return name.removesuffix("Request") if direction == "request" else name

    def get_paginated_name(self, serializer_name: str) -> str:
        """Return the component's name of one page."""
        return f"{serializer_name}Page"

    def _access(self) -> AccessRule:
        access = self._viewset.access_for(self.method)
        if access is None:
            raise TypeError(f"{type(self._viewset).__name__}.access lacks {self._viewset.action}")
        return access

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


def _add_version(operation: dict[str, Any], *, takes_one: bool) -> None:
    """Add the response's ETag and, for an operation that takes one, the header If-Match."""
    success = operation["responses"][min(operation["responses"])]
    success["headers"] = {"ETag": {"schema": {"type": "string"}, "description": ETAG}}
    if takes_one:
        parameter = {"name": HEADER, "in": "header", "schema": {"type": "string"}}
        operation.setdefault("parameters", []).append(parameter | {"description": IF_MATCH})
