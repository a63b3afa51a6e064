"""Three brains on three machines, over one store, behind the balancer of docs/scaling.md."""

import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.edgecache.balancer import balanced, is_ready
from tests.edgecache.brain.restarts.test_restarts_under_load import (
    REQUESTS,
    START_S,
    answered,
    clients,
)
from tests.edgecache.cluster import Cluster
from tests.edgecache.conftest import connect
from tests.edgecache.several_brains import Brains
from tests.edgecache.writers import Writers, check, tenant
from tests.load import load
from tests.waiting import wait_until


@pytest.fixture
def three(brains: Brains) -> list[Cluster]:
    """Return three brains, each with a folder of its own."""
    return [brains(workers=0) for _ in range(3)]


@pytest.fixture
def front(three: list[Cluster], tmp_path: Path) -> Iterator[Cluster]:
    """Return the three as clients see them: at the balancer's port."""
    with balanced(three, tmp_path) as found:
        yield found


def test_a_restart_of_each_brain_fails_no_request(three: list[Cluster], front: Cluster) -> None:
    with clients(front, front.tenant()) as callers, load(callers) as seen:
        for brain in three:
            seen.goes_on()
            brain.brain.terminate()
            assert brain.brain.wait(20) == 0
            brain.restart(0)
            wait_until(partial(is_ready, brain), timeout_s=START_S)
        wait_until(lambda: seen.failures or answered(seen) > REQUESTS, timeout_s=START_S)
    assert seen.failures == []


def test_no_acknowledged_put_is_lost_when_brains_die_and_hang(
    three: list[Cluster], front: Cluster
) -> None:
    keys, _ = tenant(front)
    with Writers(keys, front.url) as writers:
        writers.wait_for(50)
        three[0].kill(0)
        writers.wait_for(50)
        three[0].restart(0)
        three[1].brain.send_signal(signal.SIGSTOP)
        writers.wait_for(50)
        three[1].brain.send_signal(signal.SIGCONT)
        writers.wait_for(50)
    assert writers.refused <= {500, 502, 503, 504}
    for each in (front, *three):
        wait_until(partial(is_ready, each), timeout_s=START_S)
        check(connect(keys, each.url), writers)
