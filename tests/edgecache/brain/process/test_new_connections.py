"""A brain or a cache worker that ends, or is restarted, while clients connect."""

import signal
from collections.abc import Callable

import pytest

from tests.edgecache.brain.support import health_of, run_worker
from tests.edgecache.cluster import Cluster
from tests.new_connections import CLIENTS, new_connections
from tests.waiting import wait_until

pytestmark = pytest.mark.slow


def test_a_brain_that_ends_resets_no_new_connection(start: Callable[..., Cluster]) -> None:
    brain = start()
    with new_connections("/health", [brain.internal_port]) as clients:
        clients.go_on()
        brain.brain.send_signal(signal.SIGTERM)
        wait_until(lambda: clients.seen["refused"] == CLIENTS)
    assert clients.lost == {}
    assert brain.brain.wait(20) == 0


def test_brains_that_restart_one_after_the_other_lose_no_new_connection(
    start: Callable[..., Cluster],
) -> None:
    """SIGHUP, which would end one in the middle of its requests by default, as well."""
    cluster = start(brains=2)
    with new_connections("/health", [cluster.internal_port]) as clients:
        for number, how in enumerate((signal.SIGTERM, signal.SIGHUP)):
            clients.go_on()
            cluster.processes[number].send_signal(how)
            assert cluster.processes[number].wait(20) == 0
            cluster.restart(number)
            cluster.wait_for_brain(number)
        clients.go_on()
    assert clients.lost == {}
    assert clients.seen["refused"] == 0


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP])
def test_a_cache_worker_that_ends_resets_no_new_connection(
    bare_cluster: Cluster, how: signal.Signals
) -> None:
    worker = run_worker(bare_cluster, f"ends by {how.name}")
    wait_until(lambda: health_of(bare_cluster, worker) == "online")
    with new_connections("/healthz", [worker.port]) as clients:
        clients.go_on()
        worker.send(how)
        wait_until(lambda: clients.seen["refused"] == CLIENTS)
    assert clients.lost == {}
    assert worker.process.wait(20) == 0
