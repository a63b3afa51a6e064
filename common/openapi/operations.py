"""Descriptions of operations besides the view's declarations: tag, problems and examples.

Each app lists its operations in an ``openapi.py`` beside its views::

    OPERATIONS: Final[Operations] = {
        "POST /v1/auth/login": Operation(
            tag="Sign in",
            problems=(InvalidCredentials, TooManyAttempts),
            request={"email": "alice@example.com", "password": "correct horse battery staple"},
            response={"status": "authenticated", ...},
        ),
    }

drf-spectacular warns of an operation that is in no table, and `make check` fails on warnings.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from common.errors import PlatformError
from common.openapi.shapes import Shape
from common.openapi.tags import Tag


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """The description of one method of one path.

    problems: of this operation, in addition to ``common.openapi.problems.common``.
    request: an example of the body, text if it is not JSON; a test sends it.
    response: an example of the successful response's body.
    streams: other forms of the successful response: a schema by media type; the only ones of an
    operation without ``response``.
    path: the schemas of path parameters that are not plain text.
    """

    tag: Tag
    problems: tuple[type[PlatformError], ...] = ()
    request: Mapping[str, Any] | str | None = None
    response: Mapping[str, Any] | None = None
    streams: Mapping[str, Shape] = field(default_factory=dict)
    path: Mapping[str, Shape] = field(default_factory=dict)


Operations = Mapping[str, Operation]


def find(view_module: str, key: str) -> Operation | None:
    """Return the operation ``METHOD /path`` from the nearest table, None if there is none."""
    return next((table[key] for table in tables(view_module) if key in table), None)


def tables(view_module: str) -> Iterator[Operations]:
    """Yield the tables of the view's own package and of its parent packages, in this order."""
    package = view_module
    while "." in package:
        package = package.rpartition(".")[0]
        name = f"{package}.openapi"
        if find_spec(name) is not None:
            yield import_module(name).OPERATIONS
