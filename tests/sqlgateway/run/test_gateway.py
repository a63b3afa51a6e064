"""What a request costs the control plane, and what the rest of the platform sees of the gateway."""

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from django.conf import settings
from django.contrib import admin
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.test import override_settings

from sqlgateway import checks
from sqlgateway.databases import stock, tasks
from sqlgateway.models import Cluster, Database
from sqlgateway.run import admission
from tests import cast
from tests.sqlgateway.support import Caller

pytestmark = pytest.mark.provisions


def test_a_request_asks_the_control_database_nothing(
    alice: Caller, django_assert_num_queries: Any
) -> None:
    alice.value("SELECT 1")

    with django_assert_num_queries(0):
        assert alice.value("SELECT 1") == 1
        assert alice.sql("SELECT nonesuch").status == 400


def test_the_way_through_the_whole_platform(databases: None) -> None:
    member = cast.member(cast.organization(), "alice@example.com")
    live, sandbox = cast.signed_in(member), cast.signed_in(member, "sandbox")
    made = live.post("/v1/sql", {"query": "CREATE TABLE t (id int); INSERT INTO t VALUES (1)"})
    read = live.post("/v1/sql", {"query": "SELECT id FROM t"})
    elsewhere = sandbox.post("/v1/sql", {"query": "SELECT id FROM t"})

    assert made.status == 200
    assert read.body["rows"] == [{"id": 1}]
    assert read.body["request_id"] == read.headers["X-Request-Id"]
    assert (elsewhere.status, elsewhere.body["sqlstate"]) == (400, "42P01")
    assert cast.Caller().post("/v1/sql", {"query": "SELECT 1"}).status == 401
    assert live.get("/v1/sql").status == 405
    assert live.call("POST", "/v1/sql", b"{").code == "malformed_json"


def test_the_stock_is_kept_by_tasks(databases: None) -> None:
    tasks.keep_stock(0)
    assert stock.size() == stock.SIZE

    tasks.refill_stock()
    assert stock.size() == stock.SIZE


def test_the_admin_shows_no_secret_and_changes_nothing() -> None:
    for model in (Cluster, Database):
        shown: Any = admin.site._registry[model]
        names = {*shown.list_display, *shown.fields}
        assert not [name for name in names if "secret" in name or "role" in name]
        request: Any = None
        assert not shown.has_add_permission(request)
        assert not shown.has_change_permission(request)
        assert not shown.has_delete_permission(request)


def test_contradicting_limits_are_reported() -> None:
    assert checks.check_limits() == []
    with override_settings(SQL=replace(settings.SQL, running=1)):
        found = [message.id for message in checks.check_limits()]
    assert found == ["sqlgateway.E002"]
    assert checks.check_memory() == []
    with override_settings(SQL=replace(settings.SQL, max_bytes=2**28)):
        assert [message.id for message in checks.check_memory()] == ["sqlgateway.E007"]
    with override_settings(SQL=replace(settings.SQL, results_bytes=2**26)):
        assert [message.id for message in checks.check_memory()] == ["sqlgateway.E007"]
    with override_settings(WEB_THREADS=8):
        assert [message.id for message in checks.check_limits()] == ["sqlgateway.E005"]
    with override_settings(SQL=replace(settings.SQL, cluster_url="")):
        assert [message.id for message in checks.check_cluster()] == ["sqlgateway.E001"]


def test_nothing_starts_with_limits_that_contradict_each_other() -> None:
    with (
        override_settings(SQL=replace(settings.SQL, results_bytes=1)),
        pytest.raises(SystemCheckError, match="E007"),
    ):
        call_command("bootstrap", skip_checks=False)


def test_a_gateway_that_is_full_answers_503_and_recovers(alice: Caller) -> None:
    alice.value("SELECT 1")
    with (
        override_settings(SQL=replace(settings.SQL, running=0)),
        patch.object(admission, "QUEUE_WAIT_S", 0.05),
    ):
        answer = alice.sql("SELECT 1")
    assert (answer.status, answer.body["code"]) == (503, "sql_busy")
    assert answer.headers["Retry-After"] == "1"
    assert alice.value("SELECT 1") == 1
