"""Problem documents in OpenAPI: one schema for all, with the members that errors declare."""

from collections.abc import Mapping
from typing import Any, Final

from platform_site.lib.errors import every_error

PROBLEM: Final = "#/components/schemas/Problem"

_MEMBERS: Final[Mapping[str, Any]] = {
    "type": {"type": "string", "format": "uri"},
    "title": {"type": "string"},
    "status": {"type": "integer", "minimum": 400, "maximum": 599},
    "code": {
        "type": "string",
        "pattern": "^[a-z0-9_]+$",
        "description": "Stable; listed in docs/errors.md.",
    },
    "detail": {"type": "string"},
    "request_id": {"type": "string"},
    "errors": {
        "type": "array",
        "description": "The fields of the request that are wrong.",
        "items": {
            "type": "object",
            "required": ["field", "code", "message"],
            "properties": {
                "field": {"type": "string", "description": "A dotted path into the body."},
                "code": {"type": "string"},
                "message": {"type": "string"},
            },
        },
    },
}


def problem_schema() -> dict[str, Any]:
    """Return the schema of a problem document; members of single errors are optional in it."""
    extensions: dict[str, tuple[Any, list[str]]] = {}
    for error in sorted(every_error(), key=lambda error: error.code):
        for name, shape in error.members.items():
            first, codes = extensions.setdefault(name, (shape, []))
            if first != shape:
                raise TypeError(f"{error.__name__}.members: {name!r} has another schema elsewhere")
            if error.code not in codes:
                codes.append(error.code)
    return {
        "type": "object",
        "description": "RFC 9457 problem document.",
        "required": ["type", "title", "status", "code", "request_id"],
        "properties": {
            **_MEMBERS,
            **{name: _extension(*extensions[name]) for name in sorted(extensions)},
        },
    }


def _extension(shape: Mapping[str, Any], codes: list[str]) -> dict[str, Any]:
    where = f"With the code {', '.join(f'`{code}`' for code in codes)}."
    return {**shape, "description": f"{shape.get('description', '')} {where}".strip()}


def add_components(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add what all operations refer to (one of drf-spectacular's POSTPROCESSING_HOOKS)."""
    result["components"]["schemas"]["Problem"] = problem_schema()
    return result
