"""What OpenAPI should say of every operation without each view repeating it."""

from typing import Any, Literal

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema

from platform_site.lib.api import ApiView
from platform_site.lib.permissions import Access
from platform_site.lib.viewsets import PlatformViewSet


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # untyped hook
    """Describe the scheme to OpenAPI."""

    target_class = "platform_site.lib.authentication.PrincipalAuthentication"
    name = "bearer"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        """Give the security scheme object."""
        return {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}


class Schema(AutoSchema):
    """Add problem documents, tags by application, and the permission each operation takes."""

    def get_tags(self) -> list[str]:
        """Group by the application that owns the view."""
        return [type(self.view).__module__.split(".")[0]]

    def get_auth(self) -> list[dict[str, list[str]]]:
        """Say that public operations take no token, whatever the view's other methods take."""
        access = self._access()
        return [] if access is not None and access.kind == "public" else super().get_auth()

    def get_operation(self, *args: Any, **kwargs: Any) -> dict[str, Any] | None:
        """Add the permission below the description, wherever that comes from."""
        operation: dict[str, Any] | None = super().get_operation(*args, **kwargs)
        access = self._access()
        if operation and access is not None and access.kind == "permission":
            text = f"Takes the permission `{access.resource}:{access.action}`."
            operation["description"] = "\n\n".join(
                filter(None, [operation.get("description"), text])
            )
        return operation

    def get_override_parameters(self) -> list[Any]:
        """Leave parameters to the views."""
        view = self.view
        if isinstance(view, PlatformViewSet) and view.action in view.query_serializers:
            return [view.query_serializers[view.action]]
        return []

    def get_request_serializer(self) -> Any:
        """Take the body from the viewset's table; a view without one names it itself."""
        if isinstance(self.view, PlatformViewSet):
            return self.view.request_serializers.get(self.view.action)
        return super().get_request_serializer()

    def get_response_serializers(self) -> Any:
        """Take the answer and its status from the viewset's tables."""
        if isinstance(self.view, PlatformViewSet):
            return {self.view.success_status(): self.view.response_serializer()}
        return super().get_response_serializers()

    def get_paginated_name(self, serializer_name: str) -> str:
        """Name one page of these."""
        return f"{serializer_name}Page"

    def _get_response_bodies(
        self, direction: Literal["request", "response"] = "response"
    ) -> dict[str, Any]:
        responses: dict[str, Any] = super()._get_response_bodies(direction)
        if direction == "response":
            responses["default"] = {
                "description": "A refusal; its `code` is listed in docs/errors.md.",
                "content": {
                    "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
                },
            }
        return responses

    def _access(self) -> Access | None:
        view = self.view
        return view.access_for(self.method) if isinstance(view, ApiView) else None
