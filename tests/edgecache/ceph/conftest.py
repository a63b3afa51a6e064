"""Ceph's RADOS gateway as the store: `make test-store` runs these tests, `make test` does not."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.edgecache.conftest import HAS_CEPH
from tests.edgecache.several_brains import Brains, several_brains

collect_ignore_glob = [] if HAS_CEPH else ["test_*.py"]


@pytest.fixture
def brains(tmp_path: Path, new_store: Callable[[], dict[str, str]]) -> Iterator[Brains]:
    """Return a factory of brains on one database and store, each with a folder of its own."""
    with several_brains(tmp_path, new_store()) as begin:
        yield begin
