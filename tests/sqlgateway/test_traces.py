"""Traces of SQL hold neither its text nor its values."""

import pytest

from common import tracing
from tests.collector import traced
from tests.sqlgateway.support import Caller

pytestmark = pytest.mark.slow


def test_a_statement_is_a_span_within_its_request(alice: Caller) -> None:
    with traced() as seen:
        with tracing.root("request"):
            answer = alice.post({"query": "SELECT 'marmalade', $1::text", "params": ["lemon"]})
        assert answer.status == 200
        span = seen.child_of(seen.wait_for("request"), "SQL")
        found = {each.key: each.value for each in span.attributes}
        assert found["db.statements"].int_value == 1
        assert "error.type" not in found
    assert b"marmalade" not in seen.raw
    assert b"lemon" not in seen.raw


def test_a_refused_statement_leaves_its_code(alice: Caller) -> None:
    with traced() as seen:
        with tracing.root("request"):
            answer = alice.post({"query": "SELECT 'marmalade'::int"})
        span = seen.child_of(seen.wait_for("request"), "SQL")
        found = {each.key: each.value.string_value for each in span.attributes}
        assert found["error.type"] == answer.code
    assert b"marmalade" not in seen.raw
