"""A second server for tenants' databases."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from operations.embedded.throwaway import throwaway_cluster
from sqlgateway.models import Cluster
from tests import commands


@pytest.fixture(scope="session")
def second_url() -> Iterator[str]:
    """Return the URL of a server of its own, of the version that the tests run on."""
    initdb = shutil.which("initdb")
    assert initdb is not None
    with throwaway_cluster({**os.environ, "ZPG_BINDIR": str(Path(initdb).parent)}) as url:
        yield url


@pytest.fixture
def url_file(second_url: str, tmp_path: Path) -> str:
    """Return the path of a file that holds its URL."""
    path = tmp_path / "url"
    path.write_text(second_url + "\n")
    return str(path)


@pytest.fixture
def second(url_file: str, databases: None) -> Cluster:
    """Return the second cluster, added and open."""
    commands.run("addcluster", "second", "--url-file", url_file, "--accept-findings")
    return Cluster.objects.get(name="second")
