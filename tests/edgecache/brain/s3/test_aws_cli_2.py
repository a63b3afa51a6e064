"""Version 2 of the AWS CLI, as a new user tries it: each command a process, with its defaults."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.edgecache.brain.s3.programs import fetched, packaged, run
from tests.edgecache.cluster import Cluster

pytestmark = pytest.mark.slow

SMALL = b"hello, edge"
# Three parts of the 8 MB that it sends and copies at a time.
BIG = random.Random(0).randbytes(21_000_000)  # noqa: S311 - any bytes
Aws = Callable[..., str]


@pytest.fixture
def aws(environment: dict[str, str], cluster: Cluster) -> Aws:
    """Return a function that runs a command and returns its output."""
    path = packaged("aws", package="awscli")
    assert run(environment, path, "--version").startswith(b"aws-cli/2.")

    def command(*words: str) -> str:
        # Its configuration of endpoints is younger than Debian's version.
        return run(environment, path, "--endpoint-url", cluster.url, *words).decode()

    return command


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


def test_files_go_and_come_back(aws: Aws, files: Path, tmp_path: Path) -> None:
    assert aws("s3", "mb", "s3://first") == "make_bucket: first\n"
    aws("s3", "cp", f"{files}/small", "s3://first/folder/smäll file+1.txt")
    aws("s3", "cp", f"{files}/deep/big", "s3://first/big")
    assert names(aws("s3", "ls", "--recursive", "s3://first")) == [
        "big",
        "folder/smäll file+1.txt",
    ]
    assert "PRE folder/" in aws("s3", "ls", "s3://first/")
    aws("s3", "cp", "s3://first/big", f"{tmp_path}/got")
    assert (tmp_path / "got").read_bytes() == BIG
    assert aws("s3", "cp", "s3://first/folder/smäll file+1.txt", "-") == SMALL.decode()


def test_a_big_object_is_copied_in_parts_with_its_tags(
    aws: Aws, files: Path, tmp_path: Path
) -> None:
    named = ("--bucket", "first")
    aws("s3", "mb", "s3://first")
    aws("s3", "cp", "--metadata", "colour=blue", f"{files}/deep/big", "s3://first/big")
    tags = "TagSet=[{Key=team,Value=red + blue}]"
    aws("s3api", "put-object-tagging", *named, "--key", "big", "--tagging", tags)
    aws("s3", "cp", "s3://first/big", "s3://first/copy")
    aws("s3", "cp", "s3://first/copy", f"{tmp_path}/got")
    assert (tmp_path / "got").read_bytes() == BIG
    query = ("--output", "text", "--query")
    got = ("get-object-tagging", *named, "--key", "copy", *query, "TagSet[].[Key,Value]")
    assert aws("s3api", *got) == "team\tred + blue\n"
    head = ("head-object", *named, "--key", "copy", *query, "[Metadata.colour,ContentLength]")
    assert aws("s3api", *head) == f"blue\t{len(BIG)}\n"


def test_folders_are_kept_in_step(aws: Aws, files: Path, tmp_path: Path) -> None:
    aws("s3", "mb", "s3://first")
    assert aws("s3", "sync", "--no-progress", f"{files}", "s3://first/here").count("upload:") == 2
    assert aws("s3", "sync", "--no-progress", f"{files}", "s3://first/here") == ""
    (files / "small").write_bytes(b"longer than before")
    (files / "deep" / "big").unlink()
    said = aws("s3", "sync", "--no-progress", "--delete", f"{files}", "s3://first/here")
    assert sorted(line.split(":")[0] for line in said.splitlines()) == ["delete", "upload"]
    aws("s3", "sync", "s3://first/here", f"{tmp_path}/back")
    assert [path.name for path in (tmp_path / "back").iterdir()] == ["small"]
    assert (tmp_path / "back" / "small").read_bytes() == b"longer than before"


def test_links_work_and_a_bucket_is_emptied_and_removed(aws: Aws, files: Path) -> None:
    aws("s3", "mb", "s3://first")
    aws("s3", "sync", f"{files}", "s3://first")
    assert fetched(aws("s3", "presign", "s3://first/small").strip()) == SMALL
    assert fetched(aws("s3", "presign", "s3://first/deep/big").strip()) == BIG
    aws("s3", "rm", "--recursive", "s3://first")
    assert aws("s3", "ls", "--recursive", "s3://first") == ""
    assert aws("s3", "rb", "s3://first") == "remove_bucket: first\n"
    assert aws("s3", "ls") == ""
