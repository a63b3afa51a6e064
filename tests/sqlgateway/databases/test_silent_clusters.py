"""A tenants' cluster that falls silent: nothing is closed, and nothing comes back."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from functools import partial

import pytest
from django.conf import settings
from django.test import override_settings

from platform_site import settings as platform_settings
from sqlgateway.clusters.servers import NETWORK_LIMITS, address_without_row, administer
from sqlgateway.clusters.silence import SILENT_CLUSTERS
from sqlgateway.errors import EngineUnavailable
from sqlgateway.models import Cluster
from sqlgateway.pg import pool
from sqlgateway.pg.watchdog import WATCHDOG
from sqlgateway.run import gateway
from tests.sqlgateway import support
from tests.sqlgateway.proxy import Proxy, proxy_before
from tests.sqlgateway.support import Answer, Caller
from tests.waiting import wait_until

pytestmark = pytest.mark.provisions


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """Return a proxy before the tenants' server, through which the platform reaches it."""
    with (
        proxy_before(settings.SQL.cluster_url) as made,
        override_settings(SQL=replace(settings.SQL, cluster_url=made.url)),
    ):
        yield made
        made.is_silent = False
        pool.CONNECTION_POOL.clear()
        SILENT_CLUSTERS.__init__()  # type: ignore[misc]  # emptied in place, for other tests


def _timed(someone: Caller, query: str) -> tuple[Answer, float]:
    started = time.monotonic()
    answer = someone.sql(query)
    return answer, time.monotonic() - started


def test_a_statement_on_a_silent_cluster_ends_long_before_its_deadline(
    proxy: Proxy, alice: Caller
) -> None:
    alice.sql("CREATE TABLE t (id int)")
    threading.Timer(1.0, lambda: setattr(proxy, "is_silent", True)).start()

    answer, elapsed_s = _timed(alice, "INSERT INTO t SELECT 1 FROM pg_sleep(20)")

    assert (answer.status, answer.code) == (502, "outcome_unknown")
    assert elapsed_s < 12
    again, elapsed_s = _timed(alice, "SELECT 1")
    assert (again.status, again.code) == (503, "sql_unavailable")
    assert again.headers["Retry-After"] == "2"
    assert elapsed_s < 0.5


def test_after_a_timeout_one_request_tries_again_and_the_others_do_not_wait(
    proxy: Proxy, committed: Caller
) -> None:
    committed.value("SELECT 1")
    pool.CONNECTION_POOL.clear()
    proxy.is_silent = True
    assert committed.sql("SELECT 1").status == 503
    cluster_id = committed.database.cluster_id
    wait_until(lambda: not SILENT_CLUSTERS.refuses(cluster_id))

    with ThreadPoolExecutor(4) as executor:
        asked = [
            executor.submit(copy_context().run, _timed, committed, "SELECT 1") for _ in range(4)
        ]
        answers = [each.result() for each in asked]

    assert {answer.status for answer, _ in answers} == {503}
    assert sorted(elapsed_s > 1 for _, elapsed_s in answers) == [False, False, False, True]
    proxy.is_silent = False
    wait_until(lambda: committed.sql("SELECT 1").status == 200)
    assert committed.value("SELECT 1") == 1


def test_every_connection_to_a_cluster_gives_up_a_silent_host(proxy: Proxy, alice: Caller) -> None:
    alice.value("SELECT 1")
    connection = gateway.connect(alice.scope, "admin")
    words = connection.psycopg_connection.info.get_parameters()
    pool.CONNECTION_POOL.discard(connection)

    assert {name: words[name] for name in NETWORK_LIMITS} == NETWORK_LIMITS


def test_a_silent_cluster_delays_no_deadline_of_another(
    proxy: Proxy, alice: Caller, second: Cluster
) -> None:
    alice.value("SELECT 1")
    bob = support.caller(support.organization("Bob's"))
    assert bob.value("SELECT 1") == 1
    assert bob.database.cluster_id != alice.database.cluster_id
    connections = [gateway.connect(alice.scope, "admin") for _ in range(3)]
    proxy.is_silent = True
    for connection in connections:
        WATCHDOG.cancel(WATCHDOG.watch(connection, time.monotonic() + 60))

    answer = bob.sql("SELECT pg_sleep(20)", timeout_ms=300)

    assert (answer.status, answer.code) == (400, "query_timeout")
    for connection in connections:
        pool.CONNECTION_POOL.discard(connection)


def test_a_silent_server_that_is_no_cluster_says_nothing_of_another(proxy: Proxy) -> None:
    """As where a restore, or the addition of a cluster, is tried with two servers."""
    proxy.is_silent = True
    with pytest.raises(EngineUnavailable), administer(address_without_row(proxy.url)):
        pass
    with administer(address_without_row(platform_settings.SQL.cluster_url)) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_cluster_whose_requests_hold_all_slots_delays_no_other(
    proxy: Proxy, committed: Caller, second: Cluster
) -> None:
    committed.value("SELECT 1")
    bob = support.caller(support.organization("Bob's"))
    assert bob.value("SELECT 1") == 1
    assert bob.database.cluster_id != committed.database.cluster_id
    with (
        override_settings(SQL=replace(settings.SQL, running=1, queue=1)),
        ThreadPoolExecutor(2) as executor,
    ):
        sleep = partial(committed.sql, "SELECT pg_sleep(20)", timeout_ms=4000)
        silent = [executor.submit(copy_context().run, sleep) for _ in range(2)]
        wait_until(lambda: len(support.backends_of(committed)) == 1)
        proxy.is_silent = True

        for _ in range(3):
            answer, elapsed_s = _timed(bob, "SELECT 1")
            assert (answer.status, elapsed_s < 1) == (200, True), answer.body
        assert not silent[0].done()
