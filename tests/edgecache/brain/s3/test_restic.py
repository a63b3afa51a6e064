"""restic, as a new user tries it: a repository in a bucket, with its defaults."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.edgecache.brain.s3.programs import packaged, run
from tests.edgecache.cluster import Cluster

pytestmark = pytest.mark.slow

Restic = Callable[..., bytes]
BIG = random.Random(0).randbytes(21_000_000)  # noqa: S311 - any bytes


@pytest.fixture
def restic(environment: dict[str, str], cluster: Cluster, bucket: str) -> Restic:
    """Return a function that runs a command on the repository and returns its output."""
    path = packaged("restic", package="restic")
    variables = {
        "RESTIC_REPOSITORY": f"s3:{cluster.url}/{bucket}",
        "RESTIC_PASSWORD": "correct horse",
    }
    return lambda *words: run(environment | variables, path, *words)


def content(folder: Path) -> dict[str, bytes]:
    """Return the files below a folder."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_two_backups_are_checked_restored_and_pruned(restic: Restic, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "deep").mkdir(parents=True)
    (home / "small").write_bytes(b"hello, edge")
    (home / "deep" / "big").write_bytes(BIG)
    before = content(home)
    restic("init")
    restic("backup", str(home))
    (home / "small").write_bytes(b"changed")
    (home / "deep" / "big").write_bytes(BIG[:9_000_000] + b"in between" + BIG[9_000_000:])
    after = content(home)
    restic("backup", str(home))
    restic("check", "--read-data")

    first, second = (row["short_id"] for row in json.loads(restic("snapshots", "--json")))
    restic("restore", first, "--target", f"{tmp_path}/first")
    assert content(tmp_path / "first" / home.relative_to("/")) == before

    restic("forget", "--prune", "--max-unused", "0", "--keep-last", "1")
    restic("check", "--read-data")
    assert [row["short_id"] for row in json.loads(restic("snapshots", "--json"))] == [second]
    restic("restore", "latest", "--target", f"{tmp_path}/second")
    assert content(tmp_path / "second" / home.relative_to("/")) == after
