"""Version 2 of the AWS CLI, as a new user tries it, with its defaults."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.edgecache.brain.s3.programs import aws, fetched, packaged, run
from tests.edgecache.cluster import Cluster

pytestmark = pytest.mark.slow

SMALL = b"hello, edge"
# Three parts of the 8 MB that it sends and copies at a time.
BIG = random.Random(0).randbytes(17_000_000)  # noqa: S311 - any bytes
Aws = Callable[..., list[str]]


@pytest.fixture(scope="module")
def python() -> str:
    """Return the path of the Python that has it."""
    path = packaged("aws", package="awscli")
    assert run({}, path, "--version").startswith(b"aws-cli/2.")
    return Path(path).read_text().partition("\n")[0].removeprefix("#!")


@pytest.fixture
def run_aws(environment: dict[str, str], cluster: Cluster, python: str) -> Aws:
    """Return a function that runs commands and returns the output of each."""
    # Its configuration of endpoints is younger than Debian's version.
    address = ("--endpoint-url", cluster.url)

    def commands(*words: Sequence[str]) -> list[str]:
        return aws(environment, *([*address, *each] for each in words), python=python)

    return commands


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Return a folder with a small and a big file."""
    folder = tmp_path / "files"
    (folder / "deep").mkdir(parents=True)
    (folder / "small").write_bytes(SMALL)
    (folder / "deep" / "big").write_bytes(BIG)
    return folder


def names(listed: str) -> list[str]:
    """Return the keys of ``aws s3 ls --recursive``."""
    return [line.split(maxsplit=3)[3] for line in listed.splitlines()]


def test_files_go_and_come_back(run_aws: Aws, files: Path, tmp_path: Path) -> None:
    made, _, _, listed, folders, _, shown = run_aws(
        ["s3", "mb", "s3://first"],
        ["s3", "cp", f"{files}/small", "s3://first/folder/smäll file+1.txt"],
        ["s3", "cp", f"{files}/deep/big", "s3://first/big"],
        ["s3", "ls", "--recursive", "s3://first"],
        ["s3", "ls", "s3://first/"],
        ["s3", "cp", "s3://first/big", f"{tmp_path}/got"],
        ["s3", "cp", "s3://first/folder/smäll file+1.txt", "-"],
    )
    assert made == "make_bucket: first\n"
    assert names(listed) == ["big", "folder/smäll file+1.txt"]
    assert "PRE folder/" in folders
    assert (tmp_path / "got").read_bytes() == BIG
    assert shown == SMALL.decode()


def test_a_big_object_is_copied_in_parts_with_its_tags(
    run_aws: Aws, files: Path, tmp_path: Path
) -> None:
    named = ("--bucket", "first")
    tags = "TagSet=[{Key=team,Value=red + blue}]"
    query = ("--output", "text", "--query")
    *_, tagged, described = run_aws(
        ["s3", "mb", "s3://first"],
        ["s3", "cp", "--metadata", "colour=blue", f"{files}/deep/big", "s3://first/big"],
        ["s3api", "put-object-tagging", *named, "--key", "big", "--tagging", tags],
        ["s3", "cp", "s3://first/big", "s3://first/copy"],
        ["s3", "cp", "s3://first/copy", f"{tmp_path}/got"],
        ["s3api", "get-object-tagging", *named, "--key", "copy", *query, "TagSet[].[Key,Value]"],
        [
            "s3api",
            "head-object",
            *named,
            "--key",
            "copy",
            *query,
            "[Metadata.colour,ContentLength]",
        ],
    )
    assert (tmp_path / "got").read_bytes() == BIG
    assert tagged == "team\tred + blue\n"
    assert described == f"blue\t{len(BIG)}\n"


def test_folders_are_kept_in_step(run_aws: Aws, files: Path, tmp_path: Path) -> None:
    sync = ("s3", "sync", "--no-progress")
    _, first, second = run_aws(
        ["s3", "mb", "s3://first"],
        [*sync, f"{files}", "s3://first/here"],
        [*sync, f"{files}", "s3://first/here"],
    )
    assert (first.count("upload:"), second) == (2, "")
    (files / "small").write_bytes(b"longer than before")
    (files / "deep" / "big").unlink()
    said, _ = run_aws(
        [*sync, "--delete", f"{files}", "s3://first/here"],
        ["s3", "sync", "s3://first/here", f"{tmp_path}/back"],
    )
    assert sorted(line.split(":")[0] for line in said.splitlines()) == ["delete", "upload"]
    assert [path.name for path in (tmp_path / "back").iterdir()] == ["small"]
    assert (tmp_path / "back" / "small").read_bytes() == b"longer than before"


def test_links_work_and_a_bucket_is_emptied_and_removed(run_aws: Aws, files: Path) -> None:
    *_, small, big = run_aws(
        ["s3", "mb", "s3://first"],
        ["s3", "sync", f"{files}", "s3://first"],
        ["s3", "presign", "s3://first/small"],
        ["s3", "presign", "s3://first/deep/big"],
    )
    assert fetched(small.strip()) == SMALL
    assert fetched(big.strip()) == BIG
    _, listed, removed, buckets = run_aws(
        ["s3", "rm", "--recursive", "s3://first"],
        ["s3", "ls", "--recursive", "s3://first"],
        ["s3", "rb", "s3://first"],
        ["s3", "ls"],
    )
    assert (listed, removed, buckets) == ("", "remove_bucket: first\n", "")
