"""Problem documents in OpenAPI: their schema, and the ones of each operation.

Each status of an operation lists its codes as named examples, so that pages show them and
``tests.conformance`` can check responses against them; the schema is the same for all.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final

from common import errors
from common.errors import PlatformError, every_error
from common.permissions import AccessRule
from common.problems import CONTENT_TYPE, document

SCHEMA: Final = {"$ref": "#/components/schemas/Problem"}
# A response that at least this many operations share becomes a component.
SHARED_BY: Final = 10
REQUEST_ID: Final = "0198c0de-0000-7000-8000-000000000000"

# By name, without imports: these belong to higher layers (accounts, twofactor).
_ACCESS_TOKEN_CODES: Final = frozenset(
    {
        "session_revoked",
        "token_superseded",
        "dev_token_refused",
        "api_key_invalid",
        "api_key_expired",
    }
)
_FRESH_PROOF_CODES: Final = frozenset({"step_up_required"})

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


def common(
    access: AccessRule, *, has_body: bool, has_path_parameter: bool, has_cursor: bool
) -> set[type[PlatformError]]:
    """Return the problems that every operation of this kind can return."""
    found: set[type[PlatformError]] = {
        # Also without a body, for example for a wrong Host.
        errors.InvalidRequest,
        errors.NotAcceptable,
        errors.InternalError,
        errors.Contended,
        errors.ControlDatabaseUnavailable,
    }
    if has_body:
        found |= {errors.MalformedJson, errors.PayloadTooLarge, errors.UnsupportedMedia}
    if has_path_parameter or has_cursor:
        found.add(errors.NotFound)
    return found | _of_access(access)


def _of_access(access: AccessRule) -> set[type[PlatformError]]:
    if access.kind == "public":
        return set()
    found: set[type[PlatformError]] = {
        errors.NotAuthenticated,
        errors.TokenInvalid,
        errors.TokenExpired,
    }
    found |= _by_code(_ACCESS_TOKEN_CODES)
    if access.kind != "member" or access.key_scope not in {"", "any"}:
        found.add(errors.Forbidden)
    if access.key_scope == "" or access.is_fresh:
        found.add(errors.ApiKeyForbidden)
    if not access.is_always_open:
        found.add(errors.SecondFactorDue)
    if not access.is_open_without_email:
        found.add(errors.EmailRequired)
    if access.is_fresh:
        found |= _by_code(_FRESH_PROOF_CODES)
    return found


def _by_code(codes: Collection[str]) -> set[type[PlatformError]]:
    return {error for error in every_error() if error.code in codes}


def responses(problems: Iterable[type[PlatformError]]) -> dict[str, Any]:
    """Return the response object of each status, with its codes as examples."""
    by_status: dict[int, list[type[PlatformError]]] = {}
    for error in sorted(problems, key=lambda error: (error.status, error.code)):
        by_status.setdefault(error.status, []).append(error)
    return {
        str(status): {
            "description": f"{HTTPStatus(status).phrase}: "
            + ", ".join(f"`{error.code}`" for error in found)
            + ".",
            "content": {
                CONTENT_TYPE: {
                    "schema": SCHEMA,
                    "examples": {
                        error.code: {"$ref": f"#/components/examples/{error.__name__}"}
                        for error in found
                    },
                }
            },
        }
        for status, found in by_status.items()
    }


def schema() -> dict[str, Any]:
    """Return the schema of a problem document; members of single errors are optional."""
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
    """Add the referenced components (one of drf-spectacular's POSTPROCESSING_HOOKS)."""
    components = result["components"]
    components["schemas"]["Problem"] = schema()
    components["examples"] = {
        error.__name__: {"summary": error.title, "value": document(error(), REQUEST_ID)}
        for error in sorted(every_error(), key=lambda error: error.__name__)
    }
    components["responses"] = _share_responses(
        [operation for path in result["paths"].values() for operation in path.values()]
    )
    return result


def _share_responses(operations: list[dict[str, Any]]) -> dict[str, Any]:
    """Replace the most frequent response of each status by a component."""
    shared = {}
    for status in HTTPStatus:
        if status < HTTPStatus.BAD_REQUEST:
            continue
        found = [
            operation["responses"][str(status)]
            for operation in operations
            if str(status) in operation["responses"]
        ]
        if not found:
            continue
        ((description, count),) = Counter(each["description"] for each in found).most_common(1)
        if count < SHARED_BY:
            continue
        name = re.sub(r"\W", "", status.phrase.title())
        for operation in operations:
            response = operation["responses"].get(str(status), {})
            if response.get("description") == description:
                shared[name] = response
                operation["responses"][str(status)] = {"$ref": f"#/components/responses/{name}"}
    return shared
