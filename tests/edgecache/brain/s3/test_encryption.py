"""Encryption at rest: accepted and shown where the operator has declared it, else refused."""

from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.edgecache.brain.s3.multipart.support import Upload
from tests.edgecache.brain.s3.raw import Signer
from tests.edgecache.cluster import Cluster, Keys
from tests.edgecache.conftest import connect
from tests.edgecache.new_cluster import new_cluster

AES256 = {"ServerSideEncryption": "AES256"}
RULES = {"Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]}


@pytest.fixture
def signer(cluster: Cluster, keys: Keys, s3: Any, bucket: str) -> Signer:
    s3.put_object(Bucket=bucket, Key="k", Body=b"bytes")
    return Signer(keys, cluster.url)


def calls(s3: Any, **options: str) -> list[partial[Any]]:
    """Return the writes that may ask for encryption."""
    named = {"Bucket": "docs", "Key": "k", **options}
    return [
        partial(s3.put_object, **named, Body=b"x"),
        partial(s3.copy_object, **named, CopySource="docs/source"),
        partial(s3.create_multipart_upload, **named),
    ]


def test_encryption_that_is_not_declared_is_refused(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="source", Body=b"x")
    for call in calls(s3, **AES256):
        with pytest.raises(ClientError, match=r"NotImplemented.*ZBRAIN_ENCRYPTED_AT_REST"):
            call()
    head = s3.head_object(Bucket=bucket, Key="source")
    assert "ServerSideEncryption" not in head
    assert [row["Key"] for row in s3.list_objects_v2(Bucket=bucket)["Contents"]] == ["source"]
    with pytest.raises(ClientError, match=r"NotImplemented.*ZBRAIN_ENCRYPTED_AT_REST"):
        s3.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration=RULES)
    with pytest.raises(ClientError, match="ServerSideEncryptionConfigurationNotFoundError"):
        s3.get_bucket_encryption(Bucket=bucket)


def test_headers_that_are_a_mistake_at_aws_are_refused_as_there(signer: Signer, s3: Any) -> None:
    encryption = "x-amz-server-side-encryption"
    customer, kms_key = f"{encryption}-customer-algorithm", f"{encryption}-aws-kms-key-id"
    for method, target, headers, why in (
        ("PUT", "/docs/k", {encryption: "aes:kms"}, "method"),
        ("PUT", "/docs/k", {encryption: "AES256", customer: "AES256"}, "customer"),
        ("PUT", "/docs/k", {encryption: "aws:kms", customer: "AES256", kms_key: "a"}, "customer"),
        ("PUT", "/docs/k", {encryption: "AES256", kms_key: "a"}, "aws:kms"),
        ("POST", "/docs/k?uploads", {kms_key: "a"}, "aws:kms"),
        ("GET", "/docs/k", {encryption: "AES256"}, "not supported"),
        ("GET", "/docs?list-type=2", {encryption: "AES256"}, "not supported"),
    ):
        answer = signer.send(method, target, headers=headers)
        assert (answer.status, answer.code) == (400, "InvalidArgument")
        assert why in answer.text("Message")
    assert signer.send("HEAD", "/docs/k", headers={encryption: "aws:kms"}).status == 400
    for asked in ({encryption: "aws:kms", kms_key: "a"}, {customer: "AES256"}):
        answer = signer.send("PUT", "/docs/k", headers=asked)
        assert (answer.status, answer.code) == (501, "NotImplemented")
    assert s3.get_object(Bucket="docs", Key="k")["Body"].read() == b"bytes"


@pytest.mark.slow
def test_encryption_that_is_declared_is_accepted_and_shown(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with new_cluster(tmp_path_factory, workers=0, ZBRAIN_ENCRYPTED_AT_REST="true") as cluster:
        keys = cluster.tenant()
        s3 = connect(keys, cluster.url)
        s3.create_bucket(Bucket="docs")
        s3.put_object(Bucket="docs", Key="source", Body=b"x")
        answers = [call() for call in calls(s3, **AES256)]
        upload = Upload(s3, "big", **AES256)
        answers += [
            s3.upload_part(**upload.options, PartNumber=1, Body=b"x"),
            s3.upload_part_copy(**upload.options, PartNumber=2, CopySource="docs/source"),
        ]
        upload.add(1, b"x")
        answers += [
            upload.complete(),
            s3.get_object(Bucket="docs", Key="k"),
            s3.head_object(Bucket="docs", Key="source"),
        ]
        assert [answer["ServerSideEncryption"] for answer in answers] == ["AES256"] * 8
        for call in calls(s3, ServerSideEncryption="aws:kms"):
            with pytest.raises(ClientError, match=r"NotImplemented.*aws:kms"):
                call()
        s3.put_bucket_encryption(Bucket="docs", ServerSideEncryptionConfiguration=RULES)
        [rule] = s3.get_bucket_encryption(Bucket="docs")["ServerSideEncryptionConfiguration"][
            "Rules"
        ]
        assert rule["ApplyServerSideEncryptionByDefault"] == {"SSEAlgorithm": "AES256"}
        s3.delete_bucket_encryption(Bucket="docs")
        _check_other_origin(cluster, keys)


def _check_other_origin(cluster: Cluster, keys: Keys) -> None:
    """Check that nothing is said of objects that are kept by another origin."""
    web = {"name": "web", "kind": "http", "config": {"url": "http://127.0.0.1:1/"}}
    made = cluster.call("POST", f"/v1/origins?{keys.scope}", web)
    cluster.call("POST", f"/v1/buckets?{keys.scope}", {"name": "web", "origin_id": made["id"]})
    header = {"x-amz-server-side-encryption": "AES256"}
    answer = Signer(keys, cluster.url).send("PUT", "/web/k", b"x", header)
    assert (answer.status, "origin of its own" in answer.text("Message")) == (501, True)
