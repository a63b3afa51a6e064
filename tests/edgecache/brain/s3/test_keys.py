"""Keys and bucket names: anything Unicode is a key, and no key is a path on the disk."""

import os
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from botocore.exceptions import ClientError

from tests.edgecache.brain.s3.raw import Signer, send
from tests.edgecache.cluster import Cluster, Keys
from tests.edgecache.conftest import connect

ODD = [
    "plain",
    "a/b/c",
    "/leading",
    "trailing/",
    "double//slash",
    "../../etc/passwd",
    "./x/../y",
    "..",
    ".",
    " blank before and behind ",
    "plus+and%20percent%2F%",
    "question?mark&and=more#hash",
    "quote\"'<>&;",
    "back\\slash",
    "tab\tand\nnewline\rreturn",
    "control\x01\x1f\x7f",
    "ümläut ß",
    "日本語/キー",
    "emoji \U0001f9ca\U0001f469\u200d\U0001f680",
    "combining e\u0301 and \u00e9",
    "right to left \u202e\u0627\u0644",
    "not a character \uffff\ufffe",
    "~tilde-_.!*'()",
    "x" * 1024,
    "\U0001f9ca" * 256,
    "a" * 255 + "/" + "b" * 255,
]


def test_an_unusual_key_is_stored_listed_read_and_deleted_unchanged(s3: Any, bucket: str) -> None:
    for key in ODD:
        body = key.encode()
        s3.put_object(Bucket=bucket, Key=key, Body=body)
        assert s3.get_object(Bucket=bucket, Key=key)["Body"].read() == body
        assert s3.head_object(Bucket=bucket, Key=key)["ContentLength"] == len(body)
        listed = s3.list_objects_v2(Bucket=bucket)["Contents"]
        assert [row["Key"] for row in listed] == [key]
        assert [r["Key"] for r in s3.list_objects(Bucket=bucket)["Contents"]] == [key]
        assert s3.list_objects_v2(Bucket=bucket, Prefix=key)["KeyCount"] == 1
        s3.copy_object(Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": key})
        assert s3.get_object(Bucket=bucket, Key="copy")["Body"].read() == body
        s3.delete_object(Bucket=bucket, Key=key)
        assert [r["Key"] for r in s3.list_objects_v2(Bucket=bucket)["Contents"]] == ["copy"]
        s3.delete_object(Bucket=bucket, Key="copy")


def test_unusual_keys_are_listed_together_and_page_by_page(s3: Any, bucket: str) -> None:
    for key in ODD:
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    pages = s3.get_paginator("list_objects_v2").paginate(
        Bucket=bucket, PaginationConfig={"PageSize": 3}
    )
    found = [row["Key"] for page in pages for row in page.get("Contents", [])]
    assert found == sorted(ODD, key=lambda key: key.encode())


def test_no_key_is_a_path(cluster: Cluster, s3: Any, bucket: str) -> None:
    for key in ("../../../escaped", "/etc/escaped", "escaped"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    names = {path.name for path in Path(cluster.folder).rglob("*")}
    assert not any("escaped" in name for name in names)
    assert not Path("/etc/escaped").exists()
    folder = os.fspath(cluster.folder.parent)
    assert not subprocess.run(
        ["find", folder, "-name", "*escaped*"], capture_output=True, check=True
    ).stdout


def test_a_key_of_1025_bytes_is_too_long(s3: Any, bucket: str) -> None:
    for key in ("x" * 1025, "ü" * 513):
        with pytest.raises(ClientError) as refused:
            s3.put_object(Bucket=bucket, Key=key, Body=b"x")
        assert refused.value.response["Error"]["Code"] == "KeyTooLongError"


def test_an_invalid_key_is_refused(cluster: Cluster, keys: Keys, bucket: str) -> None:
    for path, status, code in [
        ("/docs/%FF", 400, "InvalidURI"),
        ("/docs/%C3%28", 400, "InvalidURI"),
        ("/docs/%zz", 400, "InvalidURI"),
        ("/docs/%ED%A0%80", 400, "InvalidURI"),
        ("/docs/a%00b", 400, "InvalidArgument"),
        ("/docs?prefix=%00", 400, "InvalidArgument"),
        ("/docs?prefix=%FF", 400, "InvalidURI"),
    ]:
        answer = Signer(keys, cluster.url).send("GET", path)
        assert (answer.status, answer.code) == (status, code)


def test_the_path_may_be_escaped_in_different_ways(
    cluster: Cluster, keys: Keys, s3: Any, bucket: str
) -> None:
    s3.put_object(Bucket=bucket, Key="a b/ü+~", Body=b"found")
    signer = Signer(keys, cluster.url)
    for path in ("/docs/a%20b/%C3%BC%2B~", "/docs/a%20b%2F%c3%bc+%7E", "/%64ocs/a%20b/%C3%BC%2B~"):
        assert signer.send("GET", path).body == b"found", path


def test_the_host_name_may_contain_the_bucket(
    cluster: Cluster, keys: Keys, s3: Any, bucket: str
) -> None:
    s3.put_object(Bucket=bucket, Key="a/b", Body=b"found")
    host = f"docs.localhost:{cluster.port}"
    signed = Signer(keys, f"http://{host}").sign("GET", "/a/b")
    assert send(cluster.url, "GET", "/a/b", signed).body == b"found"
    signed = Signer(keys, f"http://{host}").sign("GET", "/")
    answer = send(cluster.url, "GET", "/", signed)
    assert answer.text("Key") == "a/b"


def test_a_bad_bucket_name_is_refused(cluster: Cluster, keys: Keys) -> None:
    for name in [
        "ab",
        "UPPER",
        "under_score",
        "-dash",
        "dot..dot",
        "dash-.dot",
        "dot.-dash",
        "192.168.0.1",
        "x" * 64,
        "xn--abc",
        "a b",
    ]:
        answer = Signer(keys, cluster.url).send("PUT", f"/{quote(name)}")
        assert (answer.status, answer.code) == (400, "InvalidBucketName")


def test_a_bucket_is_created_once_listed_and_deleted_when_empty(s3: Any, bucket: str) -> None:
    s3.create_bucket(
        Bucket="more-docs", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"}
    )
    assert [row["Name"] for row in s3.list_buckets()["Buckets"]] == ["docs", "more-docs"]
    first = s3.list_buckets(MaxBuckets=1)
    assert [row["Name"] for row in first["Buckets"]] == ["docs"]
    rest = s3.list_buckets(MaxBuckets=1, ContinuationToken=first["ContinuationToken"])
    assert [row["Name"] for row in rest["Buckets"]] == ["more-docs"]
    assert [row["Name"] for row in s3.list_buckets(Prefix="more")["Buckets"]] == ["more-docs"]
    assert s3.get_bucket_location(Bucket=bucket)["LocationConstraint"] is None
    assert s3.head_bucket(Bucket=bucket)["BucketRegion"] == "us-east-1"
    with pytest.raises(ClientError) as refused:
        s3.create_bucket(Bucket=bucket)
    assert refused.value.response["Error"]["Code"] == "BucketAlreadyOwnedByYou"
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    with pytest.raises(ClientError) as refused:
        s3.delete_bucket(Bucket=bucket)
    assert refused.value.response["Error"]["Code"] == "BucketNotEmpty"
    s3.delete_object(Bucket=bucket, Key="k")
    s3.delete_bucket(Bucket=bucket)
    with pytest.raises(ClientError) as refused:
        s3.list_objects_v2(Bucket=bucket)
    assert refused.value.response["Error"]["Code"] == "NoSuchBucket"


def test_another_tenant_s_bucket_looks_absent(
    cluster: Cluster, s3: Any, bucket: str, keys: Keys
) -> None:
    s3.put_object(Bucket=bucket, Key="secret", Body=b"secret")
    charlie = Signer(cluster.tenant(), cluster.url)
    for method, target, headers in (
        ("GET", "/docs", {}),
        ("HEAD", "/docs", {}),
        ("GET", "/docs?location=", {}),
        ("GET", "/docs?uploads=", {}),
        ("GET", "/docs?versions=", {}),
        ("DELETE", "/docs", {}),
        ("GET", "/docs/secret", {}),
        ("GET", "/docs/secret?attributes=", {"x-amz-object-attributes": "ETag"}),
        ("HEAD", "/docs/secret", {}),
        ("PUT", "/docs/secret", {}),
        ("DELETE", "/docs/secret", {}),
        ("POST", "/docs/secret?uploads=", {}),
    ):
        foreign = charlie.send(method, target, headers=headers)
        absent = charlie.send(method, target.replace("docs", "none"), headers=headers)
        assert (foreign.status, foreign.code) == (404, absent.code), (method, target)
        assert absent.status == 404
    # The other tenant may have a bucket of the same name.
    his = connect(charlie.keys, cluster.url)
    his.create_bucket(Bucket="docs")
    assert his.list_objects_v2(Bucket="docs")["KeyCount"] == 0
    stolen = charlie.send("PUT", "/docs/k", headers={"x-amz-copy-source": "/docs/secret"})
    assert (stolen.status, stolen.code) == (404, "NoSuchKey")
    his.close()
    assert s3.get_object(Bucket=bucket, Key="secret")["Body"].read() == b"secret"
    assert cluster.tenant(like=keys).organization_id == keys.organization_id
