"""What one organization reads does not evict what another one reads."""

import os
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from tests.edgecache.brain.delivery.shelf import BODY, direct_shelf
from tests.edgecache.cluster import Cluster
from tests.edgecache.databases import brain_database

pytestmark = pytest.mark.slow

ENTRIES = 6
# Thousands of objects would have to be read to fill the cache of a brain.
NARROW = f"""
import runpy
from edgecache.brain.delivery import response_cache
response_cache.ENTRY_LIMIT = {ENTRIES}
runpy.run_module("edgecache.brain", run_name="__main__")
"""


class NarrowCluster(Cluster):
    """A brain whose response cache has few entries, and its workers."""

    def _spawn(self, log: str, command: list[str], environment: dict[str, str]) -> None:
        is_brain = log == "brain.log"
        super()._spawn(log, ["-c", NARROW] if is_brain else command, environment)


def test_an_organization_keeps_its_entry_while_another_one_reads_many_objects(
    tmp_path: Path,
) -> None:
    with brain_database() as url:
        secret_keys = Fernet.generate_key().decode()
        cluster = NarrowCluster(tmp_path, url, secret_keys, workers=1)
        try:
            cluster.start()
            alice = direct_shelf(cluster, cluster.tenant())
            bob = direct_shelf(cluster, cluster.tenant())
            for number in range(2 * ENTRIES):
                bob.put(f"k{number}", os.urandom(100))
                bob.warm(f"k{number}")

            before = alice.hits
            assert alice.get().body == BODY
            assert alice.hits == before + 1
        finally:
            cluster.stop()
