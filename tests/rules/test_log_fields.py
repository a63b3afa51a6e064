"""No log line loses a value because its field is named as a secret is."""

import ast
from collections.abc import Iterator

import pytest

from common.logs import REDACTED, SECRET_NAME, redact
from tests.packages import ROOT, sources

pytestmark = pytest.mark.slow

LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}


def calls() -> Iterator[tuple[str, ast.Call]]:
    """Return each call of a logger, with its place."""
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in LEVELS
                and ast.unparse(node.func.value).lower().endswith("log")
            ):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node


def test_no_field_of_an_event_is_blanked() -> None:
    found = list(calls())
    assert len(found) > 100
    blanked = [
        (place, keyword.arg)
        for place, call in found
        for keyword in call.keywords
        if keyword.arg and SECRET_NAME.search(keyword.arg)
    ]
    assert blanked == []


def test_an_error_code_is_readable_as_a_problem() -> None:
    event = {"event": "fill_not_kept", "problem": "bucket_not_found", "code": "123456"}
    assert redact(None, "warning", event) == event | {"code": REDACTED}
