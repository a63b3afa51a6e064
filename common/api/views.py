"""The base of every API view: strict bodies, authentication and pagination."""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any, ClassVar, Final, cast

from django.db.models import QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, inline_serializer
from rest_framework import serializers
from rest_framework.authentication import BaseAuthentication
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.pagination import CursorPagination
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from common.api.authentication import PrincipalAuthentication
from common.api.bodies import BODY_LIMIT_BYTES, OrjsonRenderer, StrictJsonParser
from common.errors import InvalidRequest, NotAuthenticated
from common.permissions import AccessRule, HasAccess
from common.principals import PlatformRequest, Principal
from common.scoping import unscoped


class StrictSerializer(serializers.Serializer[Any]):
    """A request body in which unknown fields are errors, so that typos are detected.

    A number in place of a string is an error as well. The error of a wrong choice names the right
    ones.
    """

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """Return the fields, whose messages about a wrong choice name the choices."""
        fields = super().get_fields()
        for field in fields.values():
            _name_choices(getattr(field, "child", field))
        return fields

    def to_internal_value(self, data: Any) -> Any:
        """Validate; unknown fields are named in ``errors[]`` with code ``unknown``."""
        if isinstance(data, Mapping):
            problems = (
                (str(name), [problem])
                for name, value in data.items()
                if (problem := _problem(self.fields.get(name), value)) is not None
            )
            if wrong := dict(islice(problems, MAX_FIELD_ERRORS)):
                raise serializers.ValidationError(wrong)
        return super().to_internal_value(data)


# Maximum number of field errors in a response, so that the response stays proportional to the
# request.
MAX_FIELD_ERRORS: Final = 20
UNKNOWN: Final = serializers.ErrorDetail("There is no such field.", "unknown")
NO_TEXT: Final = serializers.ErrorDetail("Not a valid string.", "invalid")


def _problem(field: Any, value: Any) -> serializers.ErrorDetail | None:
    if field is None:
        return UNKNOWN
    return NO_TEXT if _has_number_for_text(field, value) else None


def _has_number_for_text(field: Any, value: Any) -> bool:
    """True if a number is in place of a string, which DRF would convert."""
    if isinstance(value, list | dict):
        child = getattr(field, "child", None)
        # A nested serializer checks its own fields.
        if not isinstance(child, TEXTS):
            return False
        inner = value.values() if isinstance(value, dict) else value
        return any(_has_number_for_text(child, each) for each in inner)
    return isinstance(value, int | float) and isinstance(field, TEXTS)


TEXTS: Final = (serializers.CharField, serializers.UUIDField)


def _name_choices(field: Any) -> None:
    if isinstance(field, serializers.ChoiceField):
        named = ", ".join(f'"{choice}"' for choice in field.choices)
        # DRF formats the text.
        escaped = named.replace("{", "{{").replace("}", "}}")
        field.error_messages["invalid_choice"] = f'"{{input}}" is not one of {escaped}.'


@cache
def _shared(serializer: type[StrictSerializer]) -> StrictSerializer:
    """Return the shared instance that validates all bodies of a serializer class.

    Validation does not modify it, while creating one copies every field: 0.3 ms for ``POST
    /v1/sql``. Serializers of bodies must not use the request.
    """
    return serializer()


def field_names(serializer: type[StrictSerializer]) -> Sequence[str]:
    """Return the names of the fields of a body."""
    return list(_shared(serializer).fields)


# Stateless, so one of each serves all requests.
RENDERER: Final = OrjsonRenderer()
PARSERS: Final = (StrictJsonParser(),)
AUTHENTICATION: Final = PrincipalAuthentication()
NEGOTIATOR: Final = DefaultContentNegotiation()
JSON_ACCEPTED: Final = frozenset({"*/*", "application/json", "application/json, */*"})


class ApiView(APIView):
    """A view that declares who may call each method (``access``).

    ``principal`` is set in every view that is not public.
    """

    access: ClassVar[Mapping[str, AccessRule]] = {}
    body_limit_bytes: int = BODY_LIMIT_BYTES
    # OPTIONS and TRACE are not useful and not in the schema.
    http_method_names = ["get", "head", "post", "put", "patch", "delete"]
    permission_classes = (HasAccess,)
    authentication_classes = (PrincipalAuthentication,)

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Let a public method query every tenant's rows: what it is sent determines the tenant."""
        access = self.access_for(request.method or "")
        if access is None or access.kind != "public":
            return super().dispatch(request, *args, **kwargs)
        with unscoped("no principal yet"):
            return super().dispatch(request, *args, **kwargs)

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        """Return DRF's request, built from the shared parsers and authenticators."""
        self.accept_header = request.META.get("HTTP_ACCEPT", "*/*")
        is_json = self.parser_classes is APIView.parser_classes
        return Request(
            request,
            parsers=PARSERS if is_json else self.get_parsers(),
            authenticators=self.get_authenticators(),
            negotiator=NEGOTIATOR,
            parser_context={"view": self, "args": args, "kwargs": kwargs},
        )

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Enforce ``access``; API versions and DRF's throttles are not used."""
        self.format_kwarg = None
        chosen = self.perform_content_negotiation(request)
        request.accepted_renderer, request.accepted_media_type = chosen
        self.perform_authentication(request)
        self.check_permissions(request)

    def perform_content_negotiation(
        self, request: Request, force: bool = False
    ) -> tuple[BaseRenderer, str]:
        """Skip DRF's slow parsing and sorting for the usual Accept headers."""
        if self.accept_header in JSON_ACCEPTED:
            return RENDERER, RENDERER.media_type
        return super().perform_content_negotiation(request, force)

    def get_authenticators(self) -> list[BaseAuthentication]:
        """Ignore credentials in public views: an old header must not break a login."""
        access = self.access_for((self.request and self.request.method) or "")
        return [] if access is not None and access.kind == "public" else [AUTHENTICATION]

    def access_for(self, method: str) -> AccessRule | None:
        """Return the access of a method, None if the method does not exist."""
        return self.access.get(method)

    @property
    def platform_request(self) -> PlatformRequest:
        """The underlying request, with the middleware's attributes."""
        return cast(PlatformRequest, self.request)

    @property
    def principal(self) -> Principal:
        """The caller. Raises NotAuthenticated in a public view without one."""
        user: object = self.request.user
        if not isinstance(user, Principal):
            raise NotAuthenticated
        return user

    def read(self, serializer: type[StrictSerializer]) -> dict[str, Any]:
        """Return the validated body, or raise InvalidRequest naming each wrong field."""
        return self.validated(serializer, self.request.data)

    def validated(self, serializer: type[StrictSerializer], body: Any) -> dict[str, Any]:
        """Return the validated data of a body, or raise InvalidRequest naming each wrong field."""
        return cast(dict[str, Any], _shared(serializer).run_validation(body))

    def read_query(self, serializer: type[StrictSerializer]) -> dict[str, Any]:
        """Return the validated filters of the query string, or raise InvalidRequest.

        Unknown names are refused, because a mistyped filter would list everything.
        """
        given = {
            name: value
            for name, value in self.request.query_params.items()
            if name not in CursorPages.NAMES
        }
        return self.validated(serializer, given)


class CursorPages(CursorPagination):
    """``{"next", "previous", "results"}``, stable under inserts; ``?page_size=`` up to 200."""

    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 200
    ordering = "-id"
    # Names in the query string for pagination.
    NAMES: ClassVar[frozenset[str]] = frozenset({"cursor", "page_size"})
    SIZE_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "integer",
        "minimum": 1,
        "default": page_size,
        "description": f"More than {max_page_size} means {max_page_size}.",
    }

    def get_page_size(self, request: Request) -> int:
        """Return the page size, limited to the maximum.

        Raises InvalidRequest if it is not a number from 1 on.
        """
        given = request.query_params.get(self.page_size_query_param)
        if given is None:
            return self.page_size
        if not (given.isascii() and given.isdecimal() and int(given[:20]) > 0):
            message = f"A number from 1 to {self.max_page_size}."
            raise InvalidRequest.for_field(self.page_size_query_param, message)
        return min(int(given[:20]), self.max_page_size)

    def get_ordering(
        self, request: Request, queryset: QuerySet[Any], view: APIView
    ) -> tuple[str, ...]:
        """Return the order of a list: the viewset's own, else newest first."""
        return (getattr(view, "ordering", self.ordering),)

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of one page for OpenAPI."""
        link = {"type": ["string", "null"], "format": "uri"}
        return {
            "type": "object",
            "required": ["next", "previous", "results"],
            "properties": {"next": link, "previous": link, "results": schema},
        }

    def get_schema_operation_parameters(self, view: APIView) -> list[dict[str, Any]]:
        """Return the query parameters for OpenAPI."""
        return [
            {
                "name": "cursor",
                "in": "query",
                "description": "From `next` or `previous`.",
                "schema": {"type": "string"},
            },
            {
                "name": "page_size",
                "in": "query",
                "schema": self.SIZE_SCHEMA,
            },
        ]

    @classmethod
    def respond(
        cls,
        view: ApiView,
        rows: QuerySet[Any],
        *,
        serializer: type[serializers.BaseSerializer[Any]],
        context: Mapping[str, Any] | None = None,
    ) -> Response:
        """Answer with the page that the query string asks for.

        Raises NotFound for an unknown cursor.
        """
        pages = cls()
        page = pages.paginate_queryset(rows, view.request, view)
        return pages.get_paginated_response(
            serializer(page or [], many=True, context=dict(context or {})).data
        )

    @classmethod
    def parameters(cls) -> list[OpenApiParameter]:
        """Return the query parameters for OpenAPI."""
        return [
            OpenApiParameter("cursor", str, description="From `next` or `previous`."),
            OpenApiParameter("page_size", dict(cls.SIZE_SCHEMA)),
        ]

    @classmethod
    def schema_of(cls, serializer: type[serializers.BaseSerializer[Any]]) -> Any:
        """Return the schema of one page of these items for OpenAPI."""
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
