"""The base of every resource of the API: a viewset whose class body is its declaration.

How to write one (``environments/views.py`` is the example)::

    class DeviceViewSet(ListAction):
        tag = "Second factor"
        access = {"list": USER, "create": USER.fresh(), "destroy": USER, "rename": USER}
        errors = {"create": (TooManyDevices,)}
        serializer_class = DeviceSerializer
        request_serializers = {"create": DeviceCreateSerializer, "rename": DeviceNameSerializer}
        lookup_url_kwarg = "device_id"
        path_schemas = {"device_id": shapes.UUID}
        not_found = DeviceNotFound

        def get_queryset(self) -> QuerySet[Device]:
            return Device.objects.filter(user_id=self.principal.own_id)

        @extend_schema(summary="Trust a device")
        def create(self, request: Request) -> Response:
            return self.respond(devices.trust(self.principal, **self.read(), now=timezone.now()))

        @extend_schema(summary="Stop trusting a device")
        def destroy(self, request: Request, device_id: str) -> Response:
            devices.remove(self.principal, device_id)
            return self.no_content()

        @extend_schema(summary="Rename a device")
        @action(detail=True, methods=["post"])
        def rename(self, request: Request, device_id: str) -> Response:
            return self.respond(devices.rename(self.get_object(), **self.read()))

    router = Router()
    router.register("v1/devices", DeviceViewSet)
    urlpatterns = router.urls

The summary and the docstring of an action are its title and text in the OpenAPI document. Seven
tables by action name declare the rest. Both the code and the document use them, so that they cannot
contradict each other:

- ``access``: who may call the action. An action that is missing here answers 405.
- ``errors``: the error classes that the action raises, besides those of every action of its kind
  (``common/openapi/problems.py``), ``not_found`` for the paths of one object, and the viewset's
  ``shared_errors``. A test fails on an error that is answered and not listed.
- ``request_serializers``: the body. ``self.read()`` returns it validated. An action that is
  missing here answers 400 to a body, unless it has parsers of its own.
- ``query_serializers``: the query string. ``self.read_query()`` returns it validated. An action
  that is missing here answers 400 to a query but a page's, unless it has parsers of its own.
- ``response_serializers``: the response, where it is not ``serializer_class``:
  None for no body; a ``PolymorphicProxySerializer`` where the value's type field decides.
  ``self.respond(value)`` is the only way to respond with a body. Serializers of responses are
  shared by all requests, so they have no context.
- ``success_statuses``: the status, where it is not DRF's own (201 for ``create``, 200 with a
  body, 204 without one).
- ``versions``: the action that changes what an action reads: ``{"retrieve": "partial_update"}``.
  Both respond with the ETag of the fields that the change can set, and the change takes it as
  ``If-Match``: it calls ``self.require_match(row)`` with the locked row, in its transaction.
  Every other change refuses the header, and every change other conditions.

What no table holds, such as a stream beside JSON, a header or another tag, is an argument of
``extend_schema``. Examples of bodies are recorded from the tests (``common/openapi/examples.py``).

Standard actions: ``list create destroy_all`` on the collection, ``retrieve update partial_update
destroy`` on one object; ``ListAction`` and ``RetrieveAction`` provide the reading ones. Anything
else is an ``@action``; ``url_path`` may hold slashes and converters (``"<str:provider>/start"``),
and ``@rename.mapping.delete`` adds a method to the same path. Verbs without a resource, such as
``/v1/auth/login``, are actions of a viewset registered under their common path.

``tests/rules`` checks that every action is in ``access`` and walks every route with every role.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from django.db.models import QuerySet
from django.http import Http404, HttpRequest
from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework import status
from rest_framework.generics import GenericAPIView
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import Route, SimpleRouter
from rest_framework.serializers import BaseSerializer
from rest_framework.viewsets import ViewSetMixin

from common import etags
from common.api.bodies import refuse_body
from common.api.views import ApiView, CursorPages, StrictSerializer, field_names
from common.errors import InvalidRequest, NotFound, PlatformError
from common.permissions import AccessRule

# Actions that respond without a body unless they declare a serializer.
WITHOUT_BODY: Final = frozenset({"destroy", "destroy_all"})

ResponseSerializer = type[BaseSerializer[Any]] | PolymorphicProxySerializer


# One instance per class: DRF copies every field for each new serializer, which takes longer than a
# query.
_SHARED: Final[dict[Any, BaseSerializer[Any]]] = {}


def represent(serializer: ResponseSerializer, value: Any) -> Any:
    """Serialize a value, for a polymorphic serializer by its type field."""
    if isinstance(serializer, PolymorphicProxySerializer):
        variants: Any = serializer.serializers
        return represent(variants[value[serializer.resource_type_field_name]], value)
    shared = _SHARED.get(serializer)
    if shared is None:
        shared = _SHARED[serializer] = serializer()
    return shared.to_representation(value)


class PlatformViewSet(ViewSetMixin, ApiView, GenericAPIView[Any]):
    """Actions on one resource; the module's docstring explains how to write one.

    tag: the group in the OpenAPI document, a key of ``common.openapi.tags.TAGS``.
    access: by action, unlike a plain view's. ordering: of a list, stable and by indexed columns.
    not_found: raised by ``get_object``; a subclass of NotFound, with the resource's own code.
    shared_errors: raised by every action. path_schemas: JSON Schemas of the path's parameters that
    are not plain text.
    """

    tag: ClassVar[str] = ""
    access: ClassVar[Mapping[str, AccessRule]] = {}
    errors: ClassVar[Mapping[str, tuple[type[PlatformError], ...]]] = {}
    shared_errors: ClassVar[tuple[type[PlatformError], ...]] = ()
    request_serializers: ClassVar[Mapping[str, type[StrictSerializer]]] = {}
    query_serializers: ClassVar[Mapping[str, type[StrictSerializer]]] = {}
    response_serializers: ClassVar[Mapping[str, ResponseSerializer | None]] = {}
    success_statuses: ClassVar[Mapping[str, int]] = {}
    versions: ClassVar[Mapping[str, str]] = {}
    path_schemas: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    not_found: ClassVar[type[NotFound]] = NotFound
    ordering: ClassVar[str] = "-id"
    pagination_class: type[CursorPages] | None = CursorPages

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        """Set the action before its access is looked up."""
        self.action = self.action_map.get((request.method or "").lower(), "")
        return ApiView.initialize_request(self, request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Enforce ``access``, and refuse a body, query or condition that the action does not read.

        A path with NUL is not found: PostgreSQL refuses such text, also in the audit trail, with an
        error that is not a ValueError.
        """
        super().initial(request, *args, **kwargs)
        if any("\0" in str(value) for value in kwargs.values()):
            raise self.not_found
        is_json = self.parser_classes is ApiView.parser_classes
        if self.action and is_json:
            if self.action not in self.request_serializers:
                refuse_body(request.stream)
            if self.action not in self.query_serializers:
                self.read_query(StrictSerializer)
        if request.method not in SAFE_METHODS:
            self._refuse_unknown_conditions(request)

    def _refuse_unknown_conditions(self, request: Request) -> None:
        for header in etags.CONDITIONS:
            is_taken = header == etags.HEADER and self.takes_version()
            if header in request.headers and not is_taken:
                message = "This operation does not take this condition."
                raise InvalidRequest.for_field(header, message, code="unknown")

    def access_for(self, method: str) -> AccessRule | None:
        """Return the access of the action behind a method."""
        return self.access.get(self.action_map.get(method.lower(), ""))

    def get_object(self) -> Any:
        """Return the object of the path, or raise ``not_found``.

        A malformed id, such as an invalid UUID, is not found either.
        """
        try:
            return super().get_object()
        except Http404:
            raise self.not_found from None

    def response_serializer(self) -> ResponseSerializer | None:
        """Return the serializer of the current action's response, None without a body."""
        default = None if self.action in WITHOUT_BODY else self.serializer_class
        return self.response_serializers.get(self.action, default)

    def success_status(self) -> int:
        """Return the success status of the current action."""
        if self.action in self.success_statuses:
            return self.success_statuses[self.action]
        if self.response_serializer() is None:
            return status.HTTP_204_NO_CONTENT
        return status.HTTP_201_CREATED if self.action == "create" else status.HTTP_200_OK

    def takes_version(self) -> bool:
        """True if the current action takes ``If-Match``."""
        return self.action in self.versions.values()

    def has_version(self) -> bool:
        """True if the current action responds with an ``ETag``."""
        return self.takes_version() or self.action in self.versions

    def require_match(self, value: Any) -> bool:
        """Compare the version that the caller has read (If-Match) with a value as it is stored.

        value: read under the lock under which the change is made, so that of two changes from one
        version the second is refused. Returns False if the header names no version.
        Raises ChangedSinceRead (409), InvalidRequest (400).
        """
        given = self.request.headers.get(etags.HEADER)
        if given is None:
            return False
        present = self._version(represent(self._response_serializer(), value))
        return etags.require_match(given, present)

    def read(self, serializer: type[StrictSerializer] | None = None) -> dict[str, Any]:
        """Return the validated body, or raise InvalidRequest naming each wrong field."""
        return super().read(serializer or self.request_serializers[self.action])

    def read_query(self, serializer: type[StrictSerializer] | None = None) -> dict[str, Any]:
        """Return the validated filters, or raise InvalidRequest naming each wrong one."""
        return super().read_query(serializer or self.query_serializers[self.action])

    def respond(
        self,
        value: Any,
        *,
        serializer: ResponseSerializer | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Respond with a value, serialized by the action's serializer or by another one."""
        data = represent(serializer or self._response_serializer(), value)
        own = {"ETag": etags.etag_of(self._version(data))} if self.has_version() else {}
        return Response(data, status=self.success_status(), headers={**own, **(headers or {})})

    def respond_page(self, rows: QuerySet[Any]) -> Response:
        """Answer with the page of rows that the query string asks for.

        Raises NotFound for a malformed cursor.
        """
        serializer = self._response_serializer()
        page = self.paginate_queryset(rows) or []
        return self.get_paginated_response([represent(serializer, row) for row in page])

    def no_content(self, *, headers: Mapping[str, str] | None = None) -> Response:
        """Answer without a body."""
        return Response(status=self.success_status(), headers=dict(headers or {}))

    def _version(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a response that the change can set."""
        change = self.versions.get(self.action, self.action)
        names = field_names(self.request_serializers[change])
        return {name: data[name] for name in names if name in data}

    def _response_serializer(self) -> ResponseSerializer:
        serializer = self.response_serializer()
        if serializer is None:
            raise TypeError(f"{type(self).__name__}.{self.action} answers without a body")
        return serializer


class ListAction(PlatformViewSet):
    """Pages of ``get_queryset``."""

    def list(self, request: Request, **ids: str) -> Response:
        """Answer with one page."""
        return self.respond_page(self.get_queryset())


class RetrieveAction(PlatformViewSet):
    """One row of ``get_queryset``."""

    def retrieve(self, request: Request, **ids: str) -> Response:
        """Answer with the object that the path names."""
        return self.respond(self.get_object())


WITH_ROWS: Final = (ListAction, RetrieveAction)


class Router(SimpleRouter):
    """DRF's router over plain paths: no trailing slash, no index page, no regular expressions."""

    routes = [
        route._replace(mapping={**route.mapping, "delete": "destroy_all"})
        if isinstance(route, Route) and not route.detail
        else route
        for route in SimpleRouter.routes
    ]

    def __init__(self) -> None:
        super().__init__(trailing_slash=False, use_regex_path=False)

    def register(  # type: ignore[override]  # the stubs have an argument that DRF has dropped
        self, prefix: str, viewset: type[Any], basename: str | None = None
    ) -> None:
        """Add the routes of a viewset.

        Raises TypeError at startup for a viewset that lists rows without ``get_queryset``, or that
        has DRF's ``queryset``: querysets must begin with a scope.
        """
        is_unscoped = viewset.get_queryset is GenericAPIView.get_queryset
        if viewset.queryset is not None or (is_unscoped and issubclass(viewset, WITH_ROWS)):
            raise TypeError(f"{viewset.__name__} needs a get_queryset, and no queryset")
        super().register(prefix, viewset, basename)

    def get_default_basename(self, viewset: type[Any]) -> str:
        """Return the viewset's name; routes are never reversed by name."""
        return viewset.__name__
