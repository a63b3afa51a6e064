"""The base that every API view stands on: strict bodies, one way to authenticate, one to page."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final, cast

from django.conf import settings
from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, inline_serializer
from rest_framework import serializers
from rest_framework.authentication import BaseAuthentication
from rest_framework.pagination import CursorPagination
from rest_framework.response import Response
from rest_framework.views import APIView

from platform_site.lib.authentication import PrincipalAuthentication
from platform_site.lib.errors import NotAuthenticated
from platform_site.lib.permissions import Access, HasAccess
from platform_site.lib.principals import PlatformRequest, Principal


class StrictSerializer(serializers.Serializer[Any]):
    """A request body in which an unknown field is an error, so that a typo changes no meaning."""

    def to_internal_value(self, data: Any) -> Any:
        """Validate; unknown fields are named in ``errors[]`` with code ``unknown``."""
        if isinstance(data, Mapping):
            unknown = [name for name in data if name not in self.fields]
            if unknown:
                raise serializers.ValidationError(
                    {
                        str(name): [serializers.ErrorDetail("There is no such field.", "unknown")]
                        for name in unknown
                    }
                )
        return super().to_internal_value(data)


class ApiView(APIView):
    """A view that says, for each method, whom it lets in (``access``).

    ``principal`` is there in every view that is not public.
    """

    access: ClassVar[Mapping[str, Access]] = {}
    body_limit_bytes: ClassVar[int] = settings.BODY_LIMIT_BYTES
    # OPTIONS and TRACE tell nothing that the schema does not.
    http_method_names = ["get", "head", "post", "put", "patch", "delete"]
    permission_classes = (HasAccess,)
    authentication_classes = (PrincipalAuthentication,)

    def get_authenticators(self) -> list[BaseAuthentication]:
        """Ignore credentials where none are asked for: a stale header must not break a login."""
        access = self.access.get((self.request and self.request.method) or "")
        return (
            [] if access is not None and access.kind == "public" else super().get_authenticators()
        )

    @property
    def platform_request(self) -> PlatformRequest:
        """The request with what the middleware put on it (DRF's hands attributes through)."""
        return cast(PlatformRequest, self.request)

    @property
    def principal(self) -> Principal:
        """The caller.

        Raises NotAuthenticated where a view is public.
        """
        user: object = self.request.user
        if not isinstance(user, Principal):
            raise NotAuthenticated
        return user

    def read(self, serializer: type[StrictSerializer]) -> dict[str, Any]:
        """Give the validated body, or raise InvalidRequest naming each wrong field."""
        bound = serializer(data=self.request.data, context={"request": self.request})
        bound.is_valid(raise_exception=True)
        return cast(dict[str, Any], bound.validated_data)


class CursorPages(CursorPagination):
    """``{"next", "previous", "results"}``, stable under inserts; ``?page_size=`` up to 200."""

    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 200
    ordering = "-id"

    @classmethod
    def respond(
        cls,
        view: ApiView,
        rows: QuerySet[Any],
        *,
        serializer: type[serializers.BaseSerializer[Any]],
    ) -> Response:
        """Answer with the page that the query string asks for.

        Raises NotFound for a cursor that is none of ours.
        """
        pages = cls()
        page = pages.paginate_queryset(rows, view.request, view)
        return pages.get_paginated_response(serializer(page or [], many=True).data)

    @classmethod
    def parameters(cls) -> list[OpenApiParameter]:
        """Describe the query string to OpenAPI."""
        return [
            OpenApiParameter("cursor", str, description="From `next` or `previous`."),
            OpenApiParameter("page_size", int, description=f"1 to {cls.max_page_size}."),
        ]

    @classmethod
    def schema_of(cls, serializer: type[serializers.BaseSerializer[Any]]) -> Any:
        """Describe one page of these to OpenAPI."""
        name = serializer.__name__.removesuffix("Serializer") + "Page"
        return inline_serializer(
            name,
            {
                "next": serializers.URLField(allow_null=True),
                "previous": serializers.URLField(allow_null=True),
                "results": serializer(many=True),
            },
        )


NO_STORE: Final = {"Cache-Control": "no-store"}
