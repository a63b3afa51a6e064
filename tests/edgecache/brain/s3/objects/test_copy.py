"""Copies: with the source's headers or with new ones, under conditions on the source."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.edgecache.brain.s3.multipart.support import Upload
from tests.edgecache.brain.s3.raw import Signer, md5
from tests.edgecache.cluster import Cluster, Keys

SOURCE = {"Bucket": "docs", "Key": "dir/sö +rce"}


@pytest.fixture
def signer(cluster: Cluster, keys: Keys, bucket: str) -> Signer:
    """Return a signer of the tenant."""
    return Signer(keys, cluster.url)


@pytest.fixture
def source(s3: Any, bucket: str) -> str:
    """Return the ETag of an object to copy."""
    answer = s3.put_object(
        **SOURCE, Body=b"content", ContentType="text/css", Metadata={"a": "b"}, CacheControl="x"
    )
    etag: str = answer["ETag"]
    return etag


def test_a_copy_keeps_the_source_s_headers(s3: Any, source: str) -> None:
    answer = s3.copy_object(Bucket="docs", Key="copy", CopySource=SOURCE)
    assert answer["CopyObjectResult"]["ETag"] == source
    got = s3.get_object(Bucket="docs", Key="copy")
    assert (got["Body"].read(), got["ContentType"], got["Metadata"], got["CacheControl"]) == (
        b"content",
        "text/css",
        {"a": "b"},
        "x",
    )


def test_a_copy_may_replace_the_headers(s3: Any, source: str) -> None:
    s3.copy_object(
        Bucket="docs",
        Key="copy",
        CopySource=SOURCE,
        MetadataDirective="REPLACE",
        ContentType="text/html",
        Metadata={"c": "d"},
    )
    got = s3.get_object(Bucket="docs", Key="copy")
    assert (got["ContentType"], got["Metadata"]) == ("text/html", {"c": "d"})
    assert "CacheControl" not in got


def test_a_copy_onto_itself_must_change_something(s3: Any, source: str) -> None:
    with pytest.raises(ClientError) as refused:
        s3.copy_object(**SOURCE, CopySource=SOURCE)
    assert refused.value.response["Error"]["Code"] == "InvalidRequest"
    s3.copy_object(
        **SOURCE, CopySource=SOURCE, MetadataDirective="REPLACE", Metadata={"new": "yes"}
    )
    got = s3.get_object(**SOURCE)
    assert (got["Body"].read(), got["Metadata"]) == (b"content", {"new": "yes"})


def test_a_copy_applies_the_conditions_on_its_source(s3: Any, source: str) -> None:
    past = datetime.now(UTC) - timedelta(days=1)
    future = datetime.now(UTC) + timedelta(days=1)
    for condition, holds in (
        ({"CopySourceIfMatch": source}, True),
        ({"CopySourceIfMatch": '"x"'}, False),
        ({"CopySourceIfNoneMatch": source}, False),
        ({"CopySourceIfNoneMatch": '"x"'}, True),
        ({"CopySourceIfModifiedSince": past}, True),
        ({"CopySourceIfModifiedSince": future}, False),
        ({"CopySourceIfUnmodifiedSince": past}, False),
        ({"CopySourceIfUnmodifiedSince": future}, True),
    ):
        code = ""
        try:
            s3.copy_object(Bucket="docs", Key="copy", CopySource=SOURCE, **condition)
        except ClientError as error:
            code = error.response["Error"]["Code"]
        assert code == ("" if holds else "PreconditionFailed"), condition


def test_an_invalid_copy_source_is_refused(cluster: Cluster, keys: Keys, bucket: str) -> None:
    for named, status, code in [
        ("/docs/absent", 404, "NoSuchKey"),
        ("/absent/key", 404, "NoSuchBucket"),
        ("nonsense", 400, "InvalidArgument"),
        ("/docs/", 400, "InvalidArgument"),
        ("/docs/a?versionId=abc", 400, "InvalidArgument"),
        ("/docs/%FF", 400, "InvalidURI"),
        ("/do%00cs/key", 400, "InvalidBucketName"),
        ("/docs/" + "x" * 1025, 400, "KeyTooLongError"),
    ]:
        answer = Signer(keys, cluster.url).send(
            "PUT", "/docs/copy", headers={"x-amz-copy-source": named}
        )
        assert (answer.status, answer.code) == (status, code)


def test_a_plus_in_a_copy_source_is_a_blank(signer: Signer, s3: Any) -> None:
    upload = Upload(s3, "parts")
    part = f"/docs/parts?partNumber=1&uploadId={upload.options['UploadId']}"
    for key, named, body in (
        ("a b", "docs/a+b", b"blank"),
        ("a+b", "docs/a%2Bb", b"plus"),
        ("a+b", "docs/a+b", b"blank"),
        ("c+d", "docs/c+d", b"plus, which some clients do not encode"),
    ):
        if (key, named) != ("a+b", "docs/a+b"):
            s3.put_object(Bucket="docs", Key=key, Body=body)
        headers = {"x-amz-copy-source": named}
        assert signer.send("PUT", "/docs/copy", headers=headers).status == 200
        assert s3.get_object(Bucket="docs", Key="copy")["Body"].read() == body
        assert md5(body).hex() in signer.send("PUT", part, headers=headers).text("ETag")
    absent = signer.send("PUT", "/docs/copy", headers={"x-amz-copy-source": "docs/x+y"})
    assert (absent.code, absent.text("Key")) == ("NoSuchKey", "x y")


def test_a_copy_names_the_owner_of_its_source(keys: Keys, source: str, s3: Any) -> None:
    options = {"Bucket": "docs", "Key": "copy", "CopySource": SOURCE}
    owner = f"{keys.organization_id:012d}"
    s3.copy_object(**options, ExpectedSourceBucketOwner=owner)
    with pytest.raises(ClientError, match="AccessDenied"):
        s3.copy_object(**options, ExpectedSourceBucketOwner="000000000001")


def test_an_unknown_directive_is_refused(
    cluster: Cluster, keys: Keys, source: str, s3: Any
) -> None:
    headers = {"x-amz-copy-source": "/docs/dir/s%C3%B6%20%2Brce", "x-amz-metadata-directive": "X"}
    answer = Signer(keys, cluster.url).send("PUT", "/docs/copy", headers=headers)
    assert (answer.status, answer.code) == (400, "InvalidArgument")


def test_a_copy_of_an_upload_in_parts_is_one_part(s3: Any, bucket: str) -> None:
    begun = s3.create_multipart_upload(Bucket=bucket, Key="parts")
    options = {"Bucket": bucket, "Key": "parts", "UploadId": begun["UploadId"]}
    part = s3.upload_part(**options, PartNumber=1, Body=b"x")
    listed = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    s3.complete_multipart_upload(**options, MultipartUpload=listed)
    s3.copy_object(Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": "parts"})
    assert s3.head_object(Bucket=bucket, Key="parts")["ETag"].endswith('-1"')
    assert "-" not in s3.head_object(Bucket=bucket, Key="copy")["ETag"]


def test_a_copy_of_an_object_that_is_being_overwritten_has_one_of_its_versions(
    cluster: Cluster, keys: Keys, s3: Any, bucket: str
) -> None:
    signer = Signer(keys, cluster.url)
    begun = s3.create_multipart_upload(Bucket=bucket, Key="parts")
    targets = ["/docs/copy", f"/docs/parts?partNumber=1&uploadId={begun['UploadId']}"]
    is_over = threading.Event()
    signer.send("PUT", "/docs/hot", b"0")

    def overwrite(number: int) -> None:
        while not is_over.is_set():
            assert signer.send("PUT", "/docs/hot", b"%d" % number * number).status == 200

    def copy(turn: int) -> tuple[int, str]:
        headers = {"x-amz-copy-source": "/docs/hot"}
        answer = signer.send("PUT", targets[turn % 2], headers=headers)
        return answer.status, answer.code

    with ThreadPoolExecutor(5) as threads:
        writers = [threads.submit(overwrite, number) for number in (1, 2, 3)]
        try:
            answers = [*threads.map(copy, range(60))]
        finally:
            is_over.set()
        for writer in writers:
            writer.result()
    assert set(answers) == {(200, "")}
