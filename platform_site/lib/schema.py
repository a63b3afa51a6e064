"""What OpenAPI should say of every operation without each view repeating it."""

from typing import Any, Literal

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema

from platform_site.lib.permissions import Access


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

    def get_description(self) -> str:  # type: ignore[override]  # spectacular's own signature
        """Name the permission below the view's own words."""
        access = self._access()
        text = str(super().get_description() or "")
        if access is not None and access.kind == "permission":
            text += f"\n\nTakes the permission `{access.resource}:{access.action}`."
        return text

    def get_override_parameters(self) -> list[Any]:
        """Leave parameters to the views."""
        return []

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
        access: Access | None = getattr(self.view, "access", {}).get(self.method)
        return access
