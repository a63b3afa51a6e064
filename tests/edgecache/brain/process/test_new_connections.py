"""A brain or a cache worker that ends, or is replaced, while clients connect."""

import os
import re
import signal
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest

from tests.edgecache.cluster import Cluster
from tests.new_connections import CLIENTS, new_connections
from tests.processes import has_ended
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

# Of Python's modules, which a successor imports beside the load.
START_S = 60


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_brain_that_ends_resets_no_new_connection(
    start: Callable[..., Cluster], processes: str
) -> None:
    brain = start(workers=0, variables={"ZBRAIN_PROCESSES": processes})
    with new_connections("/health", [brain.internal_port]) as clients:
        clients.go_on()
        brain.brain.send_signal(signal.SIGTERM)
        wait_until(lambda: clients.seen["refused"] == CLIENTS)
    assert clients.lost == {}
    assert brain.brain.wait(20) == 0


@pytest.mark.parametrize("how", [signal.SIGUSR2, signal.SIGHUP])
def test_a_reload_of_a_brain_loses_no_connection(
    start: Callable[..., Cluster], how: signal.Signals
) -> None:
    brain = start(workers=0)
    with new_connections("/health", [brain.internal_port]) as clients:
        clients.go_on()
        brain.brain.send_signal(how)
        assert brain.brain.wait(START_S) == 0
        clients.go_on()
        (successor,) = re.findall(r'"pid":(\d+),.*brain_successor_started', brain.log)
        os.kill(int(successor), signal.SIGTERM)
        wait_until(lambda: clients.seen["refused"] == CLIENTS)
    assert clients.lost == {}
    wait_until(lambda: has_ended(int(successor)))


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP])
def test_a_cache_worker_that_ends_resets_no_new_connection(
    start: Callable[..., Cluster], how: signal.Signals
) -> None:
    cluster = start(workers=1)
    port = urlsplit(cluster.nodes[0]["endpoint"]).port
    assert port
    with new_connections("/healthz", [port]) as clients:
        clients.go_on()
        cluster.processes[1].send_signal(how)
        wait_until(lambda: clients.seen["refused"] == CLIENTS)
    assert clients.lost == {}
    assert cluster.processes[1].wait(20) == 0
