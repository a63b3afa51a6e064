"""Every route of the API, found by walking the URL configuration."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

from common.api.views import ApiView
from common.api.viewsets import PlatformViewSet
from common.permissions import AccessRule

PLACEHOLDER = re.compile(r"<(?:\w+:)?(\w+)>")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
# They are documents, not data: the schema and the pages that show it.
DOCUMENTS = {"v1/schema", "v1/docs"}


@dataclass(frozen=True)
class Route:
    """One path, its view, and the action behind each method.

    A view that is not a viewset has no names for its actions: they are the methods themselves.
    """

    path: str
    view: type[ApiView]
    actions: tuple[tuple[str, str], ...]

    @property
    def placeholders(self) -> list[str]:
        """Names of the ids in the path."""
        return PLACEHOLDER.findall(self.path)

    def filled(self, values: dict[str, str]) -> str:
        """Return the path with these ids."""
        return "/" + PLACEHOLDER.sub(lambda match: values[match[1]], self.path)

    @property
    def methods(self) -> list[str]:
        """The methods that the path answers."""
        return [method for method, _ in self.actions]

    def access_of(self, method: str) -> AccessRule:
        """Return what a method requires of its caller."""
        return self.view.access[dict(self.actions)[method]]


def _actions(callback: Any, view: type[ApiView]) -> tuple[tuple[str, str], ...]:
    if issubclass(view, PlatformViewSet):
        routed = callback.actions
        return tuple((name, routed[name.lower()]) for name in METHODS if name.lower() in routed)
    return tuple((name, name) for name in METHODS if hasattr(view, name.lower()))


def _walk(patterns: list[URLPattern | URLResolver], prefix: str) -> Iterator[tuple[str, Any]]:
    for pattern in patterns:
        path = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _walk(pattern.url_patterns, path)
        else:
            yield path, pattern.callback


def api_routes() -> list[Route]:
    """Return every route under /v1; a view there that is not an ApiView fails."""
    routes = []
    for path, callback in _walk(get_resolver().url_patterns, ""):
        if not path.startswith("v1/") or path in DOCUMENTS:
            continue
        view = getattr(callback, "cls", callback)
        assert isinstance(view, type), f"{path} is not a class-based view"
        assert issubclass(view, ApiView), f"{path} is not based on ApiView"
        routes.append(Route(path, view, _actions(callback, view)))
    return routes
