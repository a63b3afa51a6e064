"""An organization's own limit of time holds in every kind of request, and in no other's."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest

from sqlgateway.transactions.machine import ProcessSocket
from sqlgateway.transfer.exports import StreamCut
from tests import cast
from tests.sqlgateway.limits.support import limit, the_organization
from tests.sqlgateway.support import Caller
from tests.sqlgateway.transactions.support import begin, sql
from tests.sqlgateway.transfer.test_imports import MAKE, send
from tests.sqlgateway.transfer.test_streams import CSV, NDJSON, stream

LIMIT_MS = 300
# Far beyond the limit, so that only the limit can end it.
SLOW = "SELECT pg_sleep(20)"
# It waits after more rows than one piece holds.
LATER = "SELECT i, CASE WHEN i > 20000 THEN pg_sleep(20) END FROM generate_series(1, 20001) i"
TRIGGER = """
CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql
    AS 'BEGIN PERFORM pg_sleep(%s); RETURN NEW; END';
CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON items %s FOR EACH ROW EXECUTE FUNCTION wait();
"""
DEFERRED = "DEFERRABLE INITIALLY DEFERRED"
TOO_LONG = [{"field": "timeout_ms", "code": "invalid", "message": f"At most {LIMIT_MS}."}]


@pytest.fixture
def limited(alice: Caller) -> Caller:
    """Return Alice, whose organization has a limit now and whose connection is older."""
    assert alice.sql(MAKE).status == 200
    limit(alice.scope.organization_id, timeout_ms=LIMIT_MS)
    return alice


def _is_over(problem: Any) -> bool:
    assert problem["detail"] == f"The limit was {LIMIT_MS / 1000:g} s."
    return bool(problem["code"] == "query_timeout" and problem["status"] == 400)


def test_more_time_than_the_organization_may_have_is_refused_by_name(
    limited: Caller, charlie: Caller
) -> None:
    refused = limited.sql("SELECT 1", timeout_ms=LIMIT_MS + 1)

    assert (refused.status, refused.code) == (400, "invalid_request")
    assert refused.body["errors"] == TOO_LONG
    for kind in (NDJSON, CSV):
        problem = stream(limited, "SELECT 1", kind, timeout_ms=LIMIT_MS + 1).problem
        assert problem["errors"] == TOO_LONG
    assert charlie.sql("SELECT 1", timeout_ms=30_000).status == 200
    limit(limited.scope.organization_id, timeout_ms="default")
    assert limited.sql("SELECT 1", timeout_ms=30_000).status == 200


def test_a_statement_and_a_transaction_end_at_the_limit(limited: Caller) -> None:
    assert _is_over(limited.sql(SLOW).body)
    assert _is_over(limited.be("reader").sql(SLOW).body)
    assert _is_over(limited.post({"queries": [{"query": "SELECT 1"}, {"query": SLOW}]}).body)


@pytest.mark.parametrize("kind", [NDJSON, CSV])
def test_a_stream_ends_at_the_limit(limited: Caller, charlie: Caller, kind: str) -> None:
    assert _is_over(stream(limited, SLOW, kind).problem)
    assert "1" in stream(charlie, "SELECT 1 FROM pg_sleep(0.5)", kind).text


def test_a_stream_that_has_begun_ends_at_the_limit(limited: Caller) -> None:
    assert _is_over(stream(limited, LATER).records[-1]["error"])
    with pytest.raises(StreamCut):
        assert stream(limited, LATER, CSV).text


def test_an_import_ends_at_the_limit_and_leaves_no_row(limited: Caller, charlie: Caller) -> None:
    limited.sql(TRIGGER % (20, ""))
    charlie.sql(MAKE)
    charlie.sql(TRIGGER % (0.5, ""))

    assert _is_over(send(limited, b"id\n1\n", table="items", columns="id").body)

    assert limited.value("SELECT count(*) FROM items") == 0
    assert send(charlie, b"id\n1\n", table="items", columns="id").status == 200


def test_a_request_with_a_key_ends_at_the_limit_and_leaves_its_key_unused(limited: Caller) -> None:
    write = {"query": "INSERT INTO items (id) SELECT 1 FROM pg_sleep(0.5)"}
    over = limited.post(write, Idempotency_Key="one")
    kept = limited.value("SELECT count(*) FROM items")
    limit(limited.scope.organization_id, timeout_ms="default")

    assert _is_over(over.body)
    assert kept == 0
    answers = [limited.post(write, Idempotency_Key="one") for _ in range(2)]
    assert [answer.headers.get("Idempotent-Replayed") for answer in answers] == [None, "true"]
    assert limited.value("SELECT count(*) FROM items") == 1


@pytest.mark.parametrize("is_own", [True, False])
def test_a_statement_of_a_transaction_ends_at_the_limit_that_holds_then(
    signed_in_as: Callable[[str], cast.Caller], *, is_own: bool
) -> None:
    admin = signed_in_as("admin")
    with patch.object(ProcessSocket, "is_own", return_value=is_own):
        older = begin(admin)
        limit(the_organization(), timeout_ms=LIMIT_MS)
        newer = begin(admin)

        refused = older.send(1, "SELECT 1", timeout_ms=LIMIT_MS + 1)
        assert (refused.status, refused.body["errors"]) == (400, TOO_LONG)
        assert _is_over(older.run(SLOW).body)

        limit(the_organization(), timeout_ms="default")
        assert newer.run("SELECT pg_sleep(0.5)", timeout_ms=30_000).status == 200


@pytest.mark.parametrize("is_own", [True, False])
def test_a_commit_ends_at_the_limit_and_is_rolled_back(
    signed_in_as: Callable[[str], cast.Caller], *, is_own: bool
) -> None:
    admin = signed_in_as("admin")
    sql(admin, MAKE)
    sql(admin, TRIGGER % (20, DEFERRED))
    with patch.object(ProcessSocket, "is_own", return_value=is_own):
        ours = begin(admin)
        ours.run("INSERT INTO items (id) VALUES (1)")
        limit(the_organization(), timeout_ms=LIMIT_MS)

        assert _is_over(ours.commit().body)

    assert admin.get(ours.path).body["state"] == "rolled_back"
    assert sql(admin, "SELECT * FROM items") == []


def test_a_statement_of_a_transaction_may_ask_for_no_more_than_the_settings_allow(
    signed_in_as: Callable[[str], cast.Caller],
) -> None:
    ours = begin(signed_in_as("admin"))

    for name, most in (("timeout_ms", 30_000), ("max_rows", 10_000)):
        above: dict[str, Any] = {name: most + 1}
        allowed: dict[str, Any] = {name: most}
        refused = ours.send(1, "SELECT 1", **above)
        (error,) = refused.body["errors"]
        assert (refused.status, error["field"], error["message"]) == (400, name, f"At most {most}.")
        assert ours.run("SELECT 1", **allowed).status == 200
        ours = begin(ours.caller)
