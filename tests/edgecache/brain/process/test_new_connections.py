"""A brain or a cache worker that ends, or is replaced, while clients connect."""

import os
import re
import signal
from collections.abc import Callable

import pytest

from tests.edgecache.brain.support import health_of, run_worker
from tests.edgecache.cluster import Cluster
from tests.new_connections import CLIENTS, new_connections
from tests.processes import has_ended
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

# Of Python's modules, which a successor imports beside the load.
START_S = 60


def test_a_brain_that_ends_resets_no_new_connection(start: Callable[..., Cluster]) -> None:
    brain = start(workers=0, variables={"ZBRAIN_PROCESSES": "2"})
    with new_connections("/health", [brain.internal_port]) as clients:
        clients.go_on()
        brain.brain.send_signal(signal.SIGTERM)
        wait_until(lambda: clients.seen["refused"] == CLIENTS)
    assert clients.lost == {}
    assert brain.brain.wait(20) == 0


def test_a_reload_of_a_brain_loses_no_connection(start: Callable[..., Cluster]) -> None:
    """By SIGHUP, which would end it by default; tests of restarts under load send SIGUSR2."""
    brain = start(workers=0)
    with new_connections("/health", [brain.internal_port]) as clients:
        clients.go_on()
        brain.brain.send_signal(signal.SIGHUP)
        assert brain.brain.wait(START_S) == 0
        clients.go_on()
        (successor,) = re.findall(r'"pid":(\d+),.*brain_successor_started', brain.log)
        os.kill(int(successor), signal.SIGTERM)
        wait_until(lambda: clients.seen["refused"] == CLIENTS)
    assert clients.lost == {}
    wait_until(lambda: has_ended(int(successor)))


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
