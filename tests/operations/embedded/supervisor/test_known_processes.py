"""After a killed supervisor its children are ended; processes that reuse their ids are not."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from operations.embedded.supervisor.known_processes import (
    ROSTER_FILE,
    ProcessIdentity,
    Roster,
    began_at,
    identify,
)
from tests.waiting import wait_until

SLEEP = ("/bin/sleep", "60")


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(SLEEP)
    yield process
    process.kill()
    process.wait()


def test_a_recorded_child_is_ended_by_the_next_start(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    Roster(tmp_path).add("web", sleeper.pid)

    ended = Roster(tmp_path).end_leftovers()

    assert ended == 1
    assert sleeper.wait(5) == -signal.SIGTERM
    assert not (tmp_path / ROSTER_FILE).exists()


def test_another_process_that_reuses_the_id_is_not_ended(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    children = [[sleeper.pid, "another boot, another moment"]]
    (tmp_path / ROSTER_FILE).write_text(json.dumps({"mark": "f" * 32, "children": children}))

    ended = Roster(tmp_path).end_leftovers()

    assert ended == 0
    assert sleeper.poll() is None


def test_a_grandchild_is_ended_when_its_parent_is_gone(tmp_path: Path) -> None:
    roster = Roster(tmp_path)
    script = "import subprocess; print(subprocess.Popen(['/bin/sleep', '60'], stdout=2).pid)"
    environment = {**os.environ, **roster.environment}
    with subprocess.Popen(
        [sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True
    ) as child:
        roster.add("web", child.pid)
        assert child.stdout is not None
        grandchild = int(child.stdout.readline())

    ended = Roster(tmp_path).end_leftovers()

    assert ended == 1
    wait_until(lambda: not began_at(grandchild))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"mark": "x"}', '{"mark": 1, "children": [1]}'])
def test_a_damaged_record_ends_no_process(tmp_path: Path, text: str) -> None:
    (tmp_path / ROSTER_FILE).write_text(text)

    assert Roster(tmp_path).end_leftovers() == 0


def test_an_identity_ends_with_its_process(sleeper: subprocess.Popen[bytes]) -> None:
    identity = identify(sleeper.pid)
    assert identity is not None
    assert identity.is_alive()
    assert not ProcessIdentity(sleeper.pid, "earlier").is_alive()

    sleeper.kill()

    # Not reaped yet: a zombie keeps its number but does not live.
    wait_until(lambda: not identity.is_alive())
