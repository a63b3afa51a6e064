"""Every route of the API, found by walking the URL configuration."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from django.urls import URLPattern, URLResolver, get_resolver

from platform_site.lib.api import ApiView

PLACEHOLDER = re.compile(r"<(?:\w+:)?(\w+)>")
METHODS = ("get", "post", "put", "patch", "delete")
# They are documents, not data: the schema and the pages that show it.
DOCUMENTS = {"v1/schema", "v1/docs"}


@dataclass(frozen=True)
class Route:
    """One path and its view."""

    path: str
    view: type[ApiView]

    @property
    def placeholders(self) -> list[str]:
        """Names of the ids in the path."""
        return PLACEHOLDER.findall(self.path)

    def filled(self, values: dict[str, str]) -> str:
        """Give the path with these ids."""
        return "/" + PLACEHOLDER.sub(lambda match: values[match[1]], self.path)

    @property
    def methods(self) -> list[str]:
        """The methods that the view implements."""
        return [name.upper() for name in METHODS if hasattr(self.view, name)]


def _walk(patterns: list[URLPattern | URLResolver], prefix: str) -> Iterator[tuple[str, object]]:
    for pattern in patterns:
        path = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _walk(pattern.url_patterns, path)
        else:
            yield path, getattr(pattern.callback, "cls", None) or pattern.callback


def api_routes() -> list[Route]:
    """Give every route under /v1; a view there that is no ApiView fails."""
    routes = []
    for path, view in _walk(get_resolver().url_patterns, ""):
        if not path.startswith("v1/") or path in DOCUMENTS:
            continue
        assert isinstance(view, type), f"{path} is no class-based view"
        assert issubclass(view, ApiView), f"{path} does not stand on ApiView"
        routes.append(Route(path, view))
    return routes
