"""A fake brain, and workers that run against it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.edgecache.worker.brain import FakeBrain
from tests.edgecache.worker.running import Worker


@pytest.fixture
def brain() -> Iterator[FakeBrain]:
    """Return a brain that answers heartbeats."""
    fake = FakeBrain()
    yield fake
    fake.close()


@pytest.fixture
def workers(brain: FakeBrain, tmp_path: Path) -> Iterator[Callable[..., Worker]]:
    """Return a factory of workers that are stopped at the end of the test."""
    made: list[Worker] = []

    def make(*options: str, **fields: Any) -> Worker:
        folder = tmp_path / f"worker{len(made)}"
        folder.mkdir()
        worker = Worker(fields.pop("brain", brain), folder, list(options), **fields)
        made.append(worker)
        return worker

    yield make
    for worker in made:
        worker.stop()


@pytest.fixture
def worker(workers: Callable[..., Worker]) -> Worker:
    """Return a running worker that the test may change."""
    return workers().start()


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """Return a worker shared by the tests of a module; each reads and writes its own bytes."""
    brain = FakeBrain()
    worker = Worker(brain, tmp_path_factory.mktemp("lasting"))
    yield worker.start()
    worker.stop()
    brain.close()
