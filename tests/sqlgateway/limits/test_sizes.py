"""An organization's own limits of rows and bytes hold in all of its requests, and in no others."""

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test import RequestFactory, override_settings
from django.test.utils import CaptureQueriesContext

from sqlgateway.clusters import placements
from sqlgateway.databases import provisioning
from sqlgateway.models import Database
from tests import cast
from tests.sqlgateway import support
from tests.sqlgateway.limits.support import limit, the_organization
from tests.sqlgateway.support import VIEW, Caller, principal
from tests.sqlgateway.transactions.support import begin
from tests.sqlgateway.transfer.test_imports import MAKE, send
from tests.sqlgateway.transfer.test_streams import stream

FIVE = "SELECT i FROM generate_series(1, 5) AS i"
# DRF's way is taken for a content type with a parameter.
KINDS = ("application/json", "application/json; charset=utf-8")


def _posted(someone: Caller, body: bytes, kind: str, **environ: Any) -> tuple[int, Any]:
    factory = RequestFactory()
    request: Any = factory.generic("POST", "/v1/sql", body, content_type=kind, **environ)
    request.principal = principal(someone.scope, someone.role)
    request.principal_error = None
    request.request_id = "request-of-a-test"
    response = VIEW(request)
    if hasattr(response, "render"):
        response.render()
    return response.status_code, json.loads(response.content)


def _field_of(answer: Any) -> tuple[str, str]:
    (field,) = answer.body["errors"]
    return field["field"], field["message"]


def test_a_result_has_no_more_rows_than_the_organization_may_have(
    alice: Caller, charlie: Caller
) -> None:
    # Connections that are kept were opened before the limit.
    assert [len(caller.sql(FIVE).rows) for caller in (alice, charlie)] == [5, 5]
    limit(alice.scope.organization_id, max_rows=3)

    cut = alice.sql(FIVE)
    assert (len(cut.rows), cut.body["truncated"]) == (3, True)
    assert len(alice.sql(FIVE, max_rows=2).rows) == 2
    assert len(alice.be("reader").sql(FIVE).rows) == 3
    both = alice.post({"queries": [{"query": FIVE}, {"query": FIVE, "max_rows": 1}]})
    assert [len(result["rows"]) for result in both.body["results"]] == [3, 1]
    keyed = alice.post({"query": FIVE}, Idempotency_Key="one")
    assert len(keyed.rows) == 3
    assert len(charlie.sql(FIVE, max_rows=5).rows) == 5

    limit(alice.scope.organization_id, max_rows="default")
    assert len(alice.sql(FIVE).rows) == 5


def test_more_rows_than_the_organization_may_have_are_refused_by_name(alice: Caller) -> None:
    limit(alice.scope.organization_id, max_rows=3)

    assert _field_of(alice.sql(FIVE, max_rows=4)) == ("max_rows", "At most 3.")
    items = [{"query": FIVE}, {"query": FIVE, "max_rows": 4}]
    assert _field_of(alice.post({"queries": items})) == ("queries.1.max_rows", "At most 3.")
    outer = alice.post({"queries": [{"query": FIVE, "max_rows": 1}], "max_rows": 4})
    assert _field_of(outer) == ("max_rows", "At most 3.")


def test_a_stream_has_no_cap_on_rows(alice: Caller) -> None:
    limit(alice.scope.organization_id, max_rows=3, max_bytes=1024)

    assert stream(alice, FIVE).records[-1]["end"]["row_count"] == 5


def test_an_answer_has_no_more_bytes_than_the_organization_may_have(
    alice: Caller, charlie: Caller
) -> None:
    long = "SELECT repeat('x', 100) AS x FROM generate_series(1, 50)"
    limit(alice.scope.organization_id, max_bytes=2048)

    cut = alice.sql(long)
    assert cut.body["truncated"]
    assert 0 < cut.body["stats"]["bytes"] <= 2048
    batch = alice.post({"queries": [{"query": long}, {"query": long}]})
    assert batch.body["stats"]["bytes"] <= 2048
    assert not charlie.sql(long).body["truncated"]


def test_the_platforms_own_texts_are_not_cut(signed_in_as: Callable[[str], cast.Caller]) -> None:
    admin = signed_in_as("admin")
    made = "; ".join(f"CREATE TABLE t{number} (id int)" for number in range(40))
    admin.post("/v1/sql", {"query": made})
    limit(the_organization(), max_rows=1, max_bytes=1024)

    found = admin.get("/v1/sql/schema").body

    assert found["truncated"] is False
    assert len(found["tables"]) == 40


@pytest.mark.parametrize("kind", KINDS)
def test_a_body_is_no_longer_than_the_organization_may_send(
    alice: Caller, charlie: Caller, kind: str
) -> None:
    limit(alice.scope.organization_id, body_bytes=1024)
    query = json.dumps({"query": "SELECT 1 AS one -- " + "x" * 1024}).encode()
    packed = gzip.compress(query)
    assert len(packed) < 1024

    for body, environ in ((query, {}), (packed, {"HTTP_CONTENT_ENCODING": "gzip"})):
        status, answer = _posted(alice, body, kind, **environ)
        assert (status, answer["code"]) == (413, "payload_too_large")
        assert answer["detail"] == "The limit here is 1024 bytes."
        assert _posted(charlie, body, kind, **environ)[0] == 200
    assert _posted(alice, query[:500] + b'"}', kind)[0] == 200
    limit(alice.scope.organization_id, body_bytes="default")
    assert _posted(alice, query, kind)[0] == 200


def test_an_imported_body_is_no_longer_than_the_organization_may_send(
    alice: Caller, charlie: Caller
) -> None:
    lines = ["id", *map(str, range(1000, 1300))]
    body = "\n".join(lines).encode()
    assert [caller.sql(MAKE).status for caller in (alice, charlie)] == [200, 200]
    limit(alice.scope.organization_id, import_bytes=1024)

    for sent, environ in ((body, {}), (gzip.compress(body), {"HTTP_CONTENT_ENCODING": "gzip"})):
        refused = send(alice, sent, table="items", columns="id", environ=environ)
        assert (refused.status, refused.code) == (413, "payload_too_large")
        assert refused.body["detail"] == "The limit here is 1024 bytes."
    assert alice.value("SELECT count(*) FROM items") == 0
    assert send(alice, body[:1000], table="items", columns="id").status == 200
    assert send(charlie, body, table="items", columns="id").status == 200


def test_a_statement_of_a_transaction_has_the_same_limits(
    signed_in_as: Callable[[str], cast.Caller],
) -> None:
    admin = signed_in_as("admin")
    ours = begin(admin)
    limit(the_organization(), max_rows=3, max_bytes=2048, body_bytes=1024)

    assert _field_of(ours.send(1, FIVE, max_rows=4)) == ("max_rows", "At most 3.")
    assert ours.send(1, FIVE + " -- " + "x" * 1024).code == "payload_too_large"
    # What was refused has used no number.
    assert len(ours.run(FIVE).body["rows"]) == 3
    long = ours.run("SELECT repeat('x', 1000) AS x FROM generate_series(1, 3)")
    assert (len(long.body["rows"]), long.body["truncated"]) == (2, True)
    limit(the_organization(), max_rows="default")
    assert len(ours.run(FIVE).body["rows"]) == 5


@pytest.mark.provisions
def test_the_limits_hold_in_each_environment_from_the_first_request_on(alice: Caller) -> None:
    limit(alice.scope.organization_id, max_rows=3, body_bytes=1024)
    body = json.dumps({"query": "x" * 1024}).encode()

    assert _posted(alice, body, KINDS[0])[0] == 413
    # A body that is refused needs no database.
    assert not Database.objects.filter(environment_id=alice.scope.environment_pk).exists()
    assert len(alice.sql(FIVE).rows) == 3
    organization = alice.database.organization
    assert organization is not None
    assert len(support.caller(organization, "sandbox").sql(FIVE).rows) == 3


def test_the_limits_cost_no_query(alice: Caller) -> None:
    # The first contact with a cluster reads what its server can.
    alice.sql("SELECT 1")
    limit(alice.scope.organization_id, max_rows=3)

    with CaptureQueriesContext(connection) as cold:
        assert len(alice.sql(FIVE).rows) == 3
    with CaptureQueriesContext(connection) as warm:
        assert len(alice.sql(FIVE).rows) == 3

    # The placement, which was read before there were limits.
    (only,) = [each["sql"] for each in cold.captured_queries]
    assert "sqlgateway_database" in only
    assert "sqlgateway_organizationquota" in only
    assert warm.captured_queries == []


def test_the_limits_of_a_database_that_is_being_moved_are_known_and_its_placement_is_not_kept(
    alice: Caller,
) -> None:
    limit(alice.scope.organization_id, max_rows=3)
    Database.objects.filter(environment_id=alice.scope.environment_pk).update(
        state=Database.State.MOVING
    )

    assert provisioning.limits_of(alice.scope).max_rows == 3

    assert placements.PLACEMENT_CACHE.get(alice.scope.environment_pk) is None
    Database.objects.filter(environment_id=alice.scope.environment_pk).update(
        state=Database.State.ACTIVE
    )


def test_a_setting_that_is_lowered_later_holds_for_those_who_had_more(alice: Caller) -> None:
    limit(alice.scope.organization_id, max_rows=5)

    with override_settings(SQL=replace(settings.SQL, max_rows=2)):
        assert len(alice.sql(FIVE).rows) == 2
        assert _field_of(alice.sql(FIVE, max_rows=3)) == ("max_rows", "At most 2.")
