"""Bodies of ``POST /v1/sql`` that are refused, each field by its name."""

from typing import Any

import pytest

from sqlgateway.clusters import servers
from tests.sqlgateway.support import Caller

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "query"),
        ({"query": ""}, "query"),
        ({"query": 1}, "query"),
        ({"query": None}, "query"),
        ({"query": ["SELECT 1"]}, "query"),
        ({"sql": "SELECT 1"}, "sql"),
        ({"query": "SELECT 1", "param": []}, "param"),
        ({"query": "SELECT 1", "params": {}}, "params"),
        ({"query": "SELECT 1", "params": "x"}, "params"),
        ({"query": "SELECT 1", "rows": "csv"}, "rows"),
        ({"query": "SELECT 1", "numeric": "float"}, "numeric"),
        ({"query": "SELECT 1", "json": "text"}, "json"),
        ({"query": "SELECT 1", "isolation": "chaos"}, "isolation"),
        ({"query": "SELECT 1", "read_only": "maybe"}, "read_only"),
        ({"query": "SELECT 1", "timeout_ms": 0}, "timeout_ms"),
        ({"query": "SELECT 1", "timeout_ms": 30001}, "timeout_ms"),
        ({"query": "SELECT 1", "timeout_ms": "soon"}, "timeout_ms"),
        ({"query": "SELECT 1", "max_rows": 0}, "max_rows"),
        ({"query": "SELECT 1", "max_rows": 10001}, "max_rows"),
        ({"query": "SELECT 1", "queries": [{"query": "SELECT 1"}]}, "query"),
        ({"queries": []}, "queries"),
        ({"queries": [{"query": "SELECT 1"}] * 101}, "queries"),
        ({"queries": [{}]}, "queries.0.query"),
        ({"queries": [{"query": "SELECT 1", "rows": "csv"}]}, "queries.0.rows"),
        ({"queries": [{"query": "SELECT 1", "max_rows": 10001}]}, "queries.0.max_rows"),
        ({"queries": [{"query": "SELECT 1", "read_only": True}]}, "queries.0.read_only"),
        ({"query": "SELECT 1", "explain": 1}, "explain"),
        ({"query": "SELECT 1", "explain": "verbose"}, "explain"),
        ({"queries": [{"query": "SELECT 1"}], "params": []}, "params"),
        ({"queries": "SELECT 1"}, "queries"),
    ],
)
def test_a_wrong_field_is_named(alice: Caller, body: dict[str, Any], field: str) -> None:
    answer = alice.post(body)

    assert (answer.status, answer.code) == (400, "invalid_request"), answer.body
    assert answer.body["errors"][0]["field"].startswith(field), answer.body


def test_a_body_past_its_limit_is_413(alice: Caller) -> None:
    answer = alice.sql("SELECT '" + "x" * 2**20 + "'")

    assert (answer.status, answer.code) == (413, "payload_too_large")


def test_a_body_near_its_limit_is_taken(alice: Caller) -> None:
    assert alice.value("SELECT length('" + "x" * (2**20 - 100) + "')") == 2**20 - 100


def test_secrets_are_encrypted_in_the_rows(alice: Caller) -> None:
    alice.value("SELECT 1")
    database = alice.database
    cluster = servers.default()

    assert not [one for one in database.passwords.values() if one in database.secrets]
    assert "zonal_provisioner" not in cluster.url_secret
    assert "password" not in str(servers.address_of(cluster)).lower()
