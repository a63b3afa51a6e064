"""A tenants' cluster that is full, stopped or not there: 503, and back by itself."""

from dataclasses import replace

import pytest
import structlog
from django.conf import settings
from django.test import override_settings

from sqlgateway.clusters import servers, silence
from sqlgateway.clusters.placements import PLACEMENT_CACHE
from sqlgateway.models import Cluster
from sqlgateway.pg import pool
from tests.sqlgateway.support import Caller, as_provisioner

pytestmark = pytest.mark.provisions

NOWHERE = "postgresql://zonal_provisioner:hush@/postgres?host=/nonesuch"


def test_an_unreachable_cluster_is_503_and_reveals_nothing(alice: Caller) -> None:
    with (
        override_settings(SQL=replace(settings.SQL, cluster_url=NOWHERE)),
        structlog.testing.capture_logs() as logs,
    ):
        answer = alice.sql("SELECT 1")

    assert (answer.status, answer.code) == (503, "sql_unavailable")
    assert answer.headers["Retry-After"] == "2"
    assert "nonesuch" not in str(answer.body)
    assert "hush" not in f"{answer.body}{logs}"


def test_a_known_environment_of_a_stopped_cluster_is_503_and_recovers(alice: Caller) -> None:
    alice.value("SELECT 1")
    cluster = Cluster.objects.get()
    url = cluster.url
    pool.CONNECTION_POOL.clear()
    PLACEMENT_CACHE.clear()
    cluster.url = NOWHERE
    cluster.save()

    away = alice.sql("SELECT 1")
    cluster.url = url
    cluster.save()
    PLACEMENT_CACHE.clear()

    assert (away.status, away.code) == (503, "sql_unavailable")
    assert alice.value("SELECT 1") == 1


def test_a_server_that_is_found_unreachable_late_is_not_asked_again_immediately(
    alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a host without a route: libpq says so in its own words, not as a timeout."""
    alice.value("SELECT 1")
    cluster = Cluster.objects.get()
    url = cluster.url
    # Each failure counts as a late one.
    monkeypatch.setattr(silence, "LATE_S", 0.0)
    answers = []
    for address in (NOWHERE, url):
        pool.CONNECTION_POOL.clear()
        PLACEMENT_CACHE.clear()
        cluster.url = address
        cluster.save()
        answers.append(alice.sql("SELECT 1"))
    silence._RETRY_AT.clear()

    assert [(each.status, each.code) for each in answers] == [(503, "sql_unavailable")] * 2
    assert alice.value("SELECT 1") == 1


def test_no_cluster_at_all_is_503(alice: Caller) -> None:
    with override_settings(SQL=replace(settings.SQL, cluster_url="")):
        answer = alice.sql("SELECT 1")

    assert (answer.status, answer.code) == (503, "sql_unavailable")


@pytest.mark.parametrize("kind", ["ROLE", "DATABASE"])
def test_a_full_server_is_503_and_repairs_no_role(alice: Caller, kind: str) -> None:
    alice.value("SELECT 1")
    database = alice.database
    pool.CONNECTION_POOL.clear()
    name = database.admin_role if kind == "ROLE" else database.dbname
    as_provisioner(f"ALTER {kind} {name} CONNECTION LIMIT 0")

    with structlog.testing.capture_logs() as logs:
        full = alice.sql("SELECT 1")
    as_provisioner(f"ALTER {kind} {name} CONNECTION LIMIT 5")

    assert (full.status, full.code) == (503, "sql_unavailable")
    assert "Retry-After" in full.headers
    assert "sql_role_repaired" not in {log["event"] for log in logs}
    assert alice.value("SELECT 1") == 1


def test_a_database_that_is_gone_from_its_cluster_is_503(alice: Caller) -> None:
    alice.value("SELECT 1")
    pool.CONNECTION_POOL.clear()
    as_provisioner(f"DROP DATABASE {alice.database.dbname} WITH (FORCE)")

    answer = alice.sql("SELECT 1")

    assert (answer.status, answer.code) == (503, "sql_unavailable")
    assert alice.database.dbname not in str(answer.body)


def test_an_address_that_has_changed_is_followed(alice: Caller) -> None:
    alice.value("SELECT 1")
    cluster = Cluster.objects.get()
    good = cluster.url
    cluster.url = NOWHERE
    cluster.save()

    assert servers.default().url == good
