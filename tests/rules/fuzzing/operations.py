"""The operations of docs/openapi.yaml as schemathesis reads them, and its checks."""

from functools import cache
from typing import Any, Final

import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from tests import conformance

# Any refusal of a caller's: which one the document declares is what the others check.
REFUSALS: Final = ["4xx"]
CHECKS: Final = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
    checks.negative_data_rejection,
]


@cache
def schema() -> Any:
    """Return the document as schemathesis has it; its configuration is given here alone."""
    given = {
        "generation": {"with-security-parameters": False},
        "checks": {"negative_data_rejection": {"expected-statuses": REFUSALS}},
    }
    config = schemathesis.Config.from_dict(given)
    return schemathesis.openapi.from_dict(conformance.document_as_read(), config=config)


@cache
def operations() -> dict[str, Any]:
    """Return schemathesis' operations by ``METHOD /path``."""
    found = [result.ok() for result in schema().get_all_operations()]
    return {operation.label: operation for operation in found}


# ``METHOD /path`` of every operation.
LABELS: Final = [
    f"{method.upper()} {path}"
    for path, methods in conformance.document()["paths"].items()
    for method in methods
]


def declared(label: str) -> dict[str, Any]:
    """Return an operation as the document has it."""
    method, _, path = label.partition(" ")
    found: dict[str, Any] = conformance.document()["paths"][path][method.lower()]
    return found


def can_be_invalid(label: str) -> bool:
    """True if there is data that the document does not allow: it limits a query or a JSON body."""
    operation = declared(label)
    has_query = any(each["in"] == "query" for each in operation.get("parameters", ()))
    return has_query or conformance.JSON in operation.get("requestBody", {}).get("content", {})
