"""The clients that people use.

Each puts, gets, heads, ranges, lists, copies, uploads in parts, presigns and deletes.
"""

import io
import json
import os
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from boto3.s3.transfer import TransferConfig
from minio import Minio
from minio.commonconfig import CopySource

from tests.edgecache.brain.s3.programs import aws, fetched, packaged, run
from tests.edgecache.cluster import Cluster, Keys, until

pytestmark = pytest.mark.slow

SMALL = b"hello, edge"
BIG = os.urandom(12 * 2**20 + 17)
# Names that each tool has its own way of escaping.
KEY = "folder/sm\u00e4ll file+1.txt"

# The operations that each client must use, with their statuses, as the brain logs them.
NINE = {
    "put": {("PutObject", 200)},
    "get": {("GetObject", 200)},
    "head": {("HeadObject", 200)},
    "range": {("GetObject", 206)},
    "list": {("ListObjects", 200), ("ListObjectsV2", 200)},
    "copy": {("CopyObject", 200), ("UploadPartCopy", 200)},
    "parts begun": {("CreateMultipartUpload", 200)},
    "parts sent": {("UploadPart", 200)},
    "parts joined": {("CompleteMultipartUpload", 200)},
    "delete": {("DeleteObject", 204), ("DeleteObjects", 200)},
}


@pytest.fixture
def seen(cluster: Cluster, keys: Keys) -> Callable[[], None]:
    """Return a function that waits until the log has each operation with the tenant's key."""
    begin = len(cluster.log)

    def asked() -> set[tuple[str, int]]:
        lines = (line for line in cluster.log[begin:].splitlines() if keys.access_key in line)
        rows = [json.loads(line) for line in lines if line.endswith("}")]
        return {(row["operation"], row["status"]) for row in rows if "operation" in row}

    return lambda: until(lambda: all(each & asked() for each in NINE.values()))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Return a folder with a small and a big file."""
    (tmp_path / "small").write_bytes(SMALL)
    (tmp_path / "big").write_bytes(BIG)
    return tmp_path


def sent(url: str, body: bytes) -> None:
    """Send a PUT as a plain HTTP client does."""
    request = urllib.request.Request(url, data=body, method="PUT")  # noqa: S310 - loopback
    with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310 - loopback
        assert answer.status == 200


def test_boto3(s3: Any, bucket: str, seen: Callable[[], None]) -> None:
    s3.put_object(Bucket=bucket, Key=KEY, Body=SMALL)
    assert s3.get_object(Bucket=bucket, Key=KEY)["Body"].read() == SMALL
    assert s3.head_object(Bucket=bucket, Key=KEY)["ContentLength"] == len(SMALL)
    assert s3.get_object(Bucket=bucket, Key=KEY, Range="bytes=1-3")["Body"].read() == b"ell"
    s3.copy_object(Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": KEY})
    assert s3.get_object(Bucket=bucket, Key="copy")["Body"].read() == SMALL
    transfer = TransferConfig(multipart_threshold=5 * 2**20, multipart_chunksize=5 * 2**20)
    s3.upload_fileobj(io.BytesIO(BIG), bucket, "big", Config=transfer)
    got = io.BytesIO()
    s3.download_fileobj(bucket, "big", got, Config=transfer)
    assert got.getvalue() == BIG
    keys = [row["Key"] for row in s3.list_objects_v2(Bucket=bucket)["Contents"]]
    assert keys == ["big", "copy", KEY]
    options = {"Bucket": bucket, "Key": KEY}
    assert fetched(s3.generate_presigned_url("get_object", Params=options)) == SMALL
    sent(s3.generate_presigned_url("put_object", Params=options), b"by link")
    assert s3.get_object(Bucket=bucket, Key=KEY)["Body"].read() == b"by link"
    s3.delete_object(Bucket=bucket, Key=KEY)
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 2
    seen()


def test_the_aws_cli(
    environment: dict[str, str], files: Path, bucket: str, seen: Callable[[], None]
) -> None:
    here, named = f"s3://{bucket}", ["--bucket", bucket, "--key", KEY]
    part = ["--range", "bytes=1-3", f"{files}/part"]
    _, _, _, head, _, _, _, listed, link = aws(
        environment,
        ["s3", "cp", f"{files}/small", f"{here}/{KEY}"],
        ["s3", "cp", f"{files}/big", f"{here}/big"],
        ["s3", "cp", f"{here}/{KEY}", f"{files}/got"],
        ["s3api", "head-object", *named],
        ["s3api", "get-object", *named, *part],
        ["s3", "cp", f"{here}/big", f"{here}/copy of big"],
        ["s3", "cp", f"{here}/copy of big", f"{files}/copy"],
        ["s3", "ls", "--recursive", f"{here}/"],
        ["s3", "presign", f"{here}/{KEY}"],
    )
    assert (files / "got").read_bytes() == SMALL
    assert json.loads(head)["ContentLength"] == len(SMALL)
    assert (files / "part").read_bytes() == b"ell"
    assert (files / "copy").read_bytes() == BIG
    names = [line.split(maxsplit=3)[3] for line in listed.splitlines()]
    assert names == ["big", "copy of big", KEY]
    assert fetched(link.strip()) == SMALL
    _, left = aws(
        environment,
        ["s3", "rm", "--recursive", f"{here}/"],
        ["s3", "ls"],
    )
    assert left.split() == [*left.split()[:2], bucket]
    seen()


def test_s5cmd(
    environment: dict[str, str], files: Path, bucket: str, seen: Callable[[], None]
) -> None:
    def s5cmd(*command: str) -> bytes:
        return run(environment, "s5cmd", "--no-verify-ssl", *command)

    s5cmd("cp", f"{files}/small", f"s3://{bucket}/{KEY}")
    s5cmd("cp", "--part-size", "5", f"{files}/big", f"s3://{bucket}/big")
    assert s5cmd("cat", f"s3://{bucket}/{KEY}") == SMALL
    # It fetches in ranges of this size, side by side.
    s5cmd("cp", "--part-size", "5", f"s3://{bucket}/big", f"{files}/got")
    assert (files / "got").read_bytes() == BIG
    head = json.loads(s5cmd("head", f"s3://{bucket}/{KEY}"))
    assert head["size"] == len(SMALL)
    s5cmd("cp", f"s3://{bucket}/big", f"s3://{bucket}/copy")
    assert s5cmd("cat", f"s3://{bucket}/copy") == BIG
    listed = s5cmd("ls", f"s3://{bucket}/*").decode()
    assert [line.split(maxsplit=3)[3] for line in listed.splitlines()] == ["big", "copy", KEY]
    assert fetched(s5cmd("presign", f"s3://{bucket}/{KEY}").decode().strip()) == SMALL
    s5cmd("rm", f"s3://{bucket}/*")
    assert run(environment, "s5cmd", "ls", f"s3://{bucket}") == b""
    seen()


def test_rclone(
    environment: dict[str, str], files: Path, bucket: str, seen: Callable[[], None]
) -> None:
    path = packaged("rclone", package="rclone")

    def rclone(*command: str) -> bytes:
        return run(environment, path, *command)

    parts = ("--s3-upload-cutoff", "5M", "--s3-chunk-size", "5M")
    rclone("copyto", f"{files}/small", f"edge:{bucket}/{KEY}")
    rclone("copyto", *parts, f"{files}/big", f"edge:{bucket}/big")
    assert rclone("cat", f"edge:{bucket}/{KEY}") == SMALL
    assert rclone("cat", "--offset", "1", "--count", "3", f"edge:{bucket}/{KEY}") == b"ell"
    stat = json.loads(rclone("lsjson", "--stat", f"edge:{bucket}/{KEY}"))
    assert stat["Size"] == len(SMALL)
    rclone("copyto", *parts, "--s3-copy-cutoff", "5M", f"edge:{bucket}/big", f"edge:{bucket}/copy")
    rclone("copyto", f"edge:{bucket}/copy", f"{files}/got")
    assert (files / "got").read_bytes() == BIG
    listed = rclone("lsf", "-R", "--files-only", f"edge:{bucket}").decode().splitlines()
    assert sorted(listed) == ["big", "copy", KEY]
    assert fetched(rclone("link", f"edge:{bucket}/{KEY}").decode().strip()) == SMALL
    rclone("deletefile", f"edge:{bucket}/{KEY}")
    rclone("purge", f"edge:{bucket}")
    assert rclone("lsd", "edge:") == b""
    seen()


def test_rclone_with_versions(environment: dict[str, str], files: Path, bucket: str) -> None:
    path = packaged("rclone", package="rclone")

    def rclone(*command: str) -> str:
        return run(environment, path, *command).decode().strip()

    assert "Unversioned" in rclone("backend", "versioning", f"edge:{bucket}")
    assert "Enabled" in rclone("backend", "versioning", f"edge:{bucket}", "Enabled")
    for body in ("one", "second"):
        (files / "note").write_text(body)
        rclone("copyto", f"{files}/note", f"edge:{bucket}/note.txt")
    rclone("deletefile", f"edge:{bucket}/note.txt")
    assert rclone("lsf", f"edge:{bucket}") == ""
    older = rclone("lsf", "--s3-versions", f"edge:{bucket}").splitlines()
    assert len(older) == 2
    # Versions of the same second have the same name, and rclone writes both.
    bodies = [
        rclone("cat", "--s3-versions", f"edge:{bucket}/{name}") for name in sorted(set(older))
    ]
    assert "".join(bodies) in {"onesecond", "secondone"}
    rclone("copyto", f"{files}/note", f"edge:{bucket}/note.txt")
    rclone("backend", "cleanup-hidden", f"edge:{bucket}")
    assert rclone("lsf", "--s3-versions", f"edge:{bucket}") == "note.txt"
    rclone("deletefile", f"edge:{bucket}/note.txt")
    rclone("backend", "cleanup-hidden", f"edge:{bucket}")
    rclone("rmdir", f"edge:{bucket}")


def test_the_minio_library(
    cluster: Cluster, keys: Keys, bucket: str, seen: Callable[[], None]
) -> None:
    client = Minio(
        f"127.0.0.1:{cluster.port}",
        access_key=keys.access_key,
        secret_key=keys.secret_key,
        secure=False,
    )
    client.put_object(bucket, KEY, io.BytesIO(SMALL), len(SMALL), metadata={"colour": "blue"})
    client.put_object(bucket, "big", io.BytesIO(BIG), -1, part_size=5 * 2**20)
    with client.get_object(bucket, KEY) as answer:
        assert answer.read() == SMALL
    with client.get_object(bucket, "big") as answer:
        assert answer.read() == BIG
    with client.get_object(bucket, KEY, offset=1, length=3) as answer:
        assert answer.read() == b"ell"
    stat = client.stat_object(bucket, KEY)
    assert stat.metadata is not None
    assert (stat.size, stat.metadata["x-amz-meta-colour"]) == (len(SMALL), "blue")
    client.copy_object(bucket, "copy", CopySource(bucket, "big"))
    with client.get_object(bucket, "copy") as answer:
        assert answer.read() == BIG
    names = [item.object_name for item in client.list_objects(bucket, recursive=True)]
    assert names == ["big", "copy", KEY]
    assert [item.object_name for item in client.list_objects(bucket)] == ["big", "copy", "folder/"]
    assert fetched(client.presigned_get_object(bucket, KEY)) == SMALL
    sent(client.presigned_put_object(bucket, KEY), b"by link")
    with client.get_object(bucket, KEY) as answer:
        assert answer.read() == b"by link"
    for name in names:
        client.remove_object(bucket, name)
    assert list(client.list_objects(bucket)) == []
    client.remove_bucket(bucket)
    assert client.list_buckets() == []
    seen()
