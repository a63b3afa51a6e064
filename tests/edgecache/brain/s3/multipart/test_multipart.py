"""Multipart uploads: created, filled, listed, completed, aborted, concurrently."""

import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from botocore.exceptions import ClientError

from tests.edgecache.alterations import cut, flip
from tests.edgecache.brain.brains import stored_files
from tests.edgecache.brain.s3.multipart.support import BODIES, PART, Upload, refused
from tests.edgecache.brain.s3.raw import Signer, md5, send
from tests.edgecache.cluster import Cluster, Keys, until


def test_parts_become_one_object(s3: Any, bucket: str) -> None:
    upload = Upload(s3, ContentType="video/mp4", Metadata={"a": "b"}, CacheControl="no-cache")
    for number, body in ((2, BODIES[1]), (1, BODIES[0]), (7, BODIES[2])):
        upload.add(number, body)
    done = upload.complete()
    digests = b"".join(map(md5, BODIES))
    assert done["ETag"] == f'"{md5(digests).hex()}-3"'
    got = s3.get_object(Bucket=bucket, Key="big")
    assert got["Body"].read() == b"".join(BODIES)
    assert (got["ETag"], got["ContentType"], got["CacheControl"], got["Metadata"]) == (
        done["ETag"],
        "video/mp4",
        "no-cache",
        {"a": "b"},
    )
    part = s3.get_object(Bucket=bucket, Key="big", PartNumber=2)
    assert (part["PartsCount"], part["ContentLength"]) == (3, PART)
    assert part["Body"].read() == BODIES[1]
    head = s3.head_object(Bucket=bucket, Key="big", PartNumber=3)
    assert (head["PartsCount"], head["ContentLength"]) == (3, 1000)
    assert refused(lambda: s3.get_object(Bucket=bucket, Key="big", PartNumber=4)) == (
        416,
        "InvalidPartNumber",
    )
    known = s3.get_object_attributes(
        Bucket=bucket, Key="big", ObjectAttributes=["ObjectParts", "ObjectSize", "ETag"]
    )
    assert known["ObjectParts"]["TotalPartsCount"] == 3
    assert [row["Size"] for row in known["ObjectParts"]["Parts"]] == [PART, PART, 1000]
    across = s3.get_object(Bucket=bucket, Key="big", Range=f"bytes={PART - 2}-{PART + 1}")
    assert across["Body"].read() == b"aabb"


def parts_of(cluster: Cluster) -> set[Path]:
    """Return the files of parts; those of other tests may be deleted at any time."""
    return {*stored_files(cluster.folder / "brain", "parts")}


def test_an_unfinished_upload_is_not_an_object(s3: Any, bucket: str) -> None:
    upload = Upload(s3)
    upload.add(1, b"x")
    assert refused(lambda: s3.get_object(Bucket=bucket, Key="big")) == (404, "NoSuchKey")
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)


def test_an_upload_that_was_aborted_is_not_completed_by_another_s_object(
    s3: Any, bucket: str
) -> None:
    done, aborted = Upload(s3), Upload(s3)
    for upload in (done, aborted):
        upload.add(1, b"the same part")
    done.complete()
    s3.abort_multipart_upload(**aborted.options)
    assert refused(aborted.complete) == (404, "NoSuchUpload")
    unknown = Upload(s3)
    unknown.parts, unknown.options["UploadId"] = done.parts, "unknown"
    assert refused(unknown.complete) == (404, "NoSuchUpload")
    other = Upload(s3)
    other.add(1, b"other")
    assert refused(lambda: done.complete(other.parts)) == (404, "NoSuchUpload")
    done.complete()


def test_a_part_may_be_sent_again(cluster: Cluster, s3: Any, bucket: str) -> None:
    before = parts_of(cluster)
    upload = Upload(s3)
    upload.add(1, b"first")
    upload.add(1, b"second")
    assert len(parts_of(cluster) - before) == 1
    upload.complete()
    assert s3.get_object(Bucket=bucket, Key="big")["Body"].read() == b"second"
    until(lambda: parts_of(cluster) <= before)


def test_uploads_and_parts_are_listed(s3: Any, bucket: str) -> None:
    uploads = {key: Upload(s3, key) for key in ("a/1", "a/2", "b", "c/3")}
    for number in (1, 2, 3):
        uploads["b"].add(number, b"x" * number)
    listed = s3.list_multipart_uploads(Bucket=bucket)
    assert [(row["Key"], row["UploadId"]) for row in listed["Uploads"]] == [
        (key, upload.id) for key, upload in uploads.items()
    ]
    grouped = s3.list_multipart_uploads(Bucket=bucket, Delimiter="/")
    assert [row["Key"] for row in grouped["Uploads"]] == ["b"]
    assert [row["Prefix"] for row in grouped["CommonPrefixes"]] == ["a/", "c/"]
    below = s3.list_multipart_uploads(Bucket=bucket, Prefix="a/")
    assert [row["Key"] for row in below["Uploads"]] == ["a/1", "a/2"]
    for options in ({}, {"Delimiter": "/"}):
        pages = s3.get_paginator("list_multipart_uploads").paginate(
            Bucket=bucket, PaginationConfig={"PageSize": 1}, **options
        )
        names = [
            name
            for page in pages
            for name in (
                *(row["Key"] for row in page.get("Uploads", [])),
                *(row["Prefix"] for row in page.get("CommonPrefixes", [])),
            )
        ]
        assert names == (["a/", "b", "c/"] if options else ["a/1", "a/2", "b", "c/3"])
    parts = s3.list_parts(**uploads["b"].options)
    assert [(row["PartNumber"], row["Size"]) for row in parts["Parts"]] == [(1, 1), (2, 2), (3, 3)]
    page = s3.list_parts(**uploads["b"].options, MaxParts=2)
    assert (len(page["Parts"]), page["NextPartNumberMarker"], page["IsTruncated"]) == (2, 2, True)
    rest = s3.list_parts(**uploads["b"].options, PartNumberMarker=2)
    assert [row["PartNumber"] for row in rest["Parts"]] == [3]


def test_a_page_of_uploads_ends_after_a_thousand_groups(
    cluster: Cluster, keys: Keys, s3: Any, bucket: str
) -> None:
    with psycopg.connect(cluster.database_url) as database:
        database.execute(
            "INSERT INTO brain_upload (id, bucket_id, key, content_type, headers, metadata,"
            " checksum_algorithm, checksum_type) SELECT 'u' || n, b.id,"
            " 'g' || to_char(n / 2, 'FM0000') || '/' || n, '', '{}', '{}', '', ''"
            " FROM brain_bucket b, generate_series(0, 2019) n WHERE b.organization_id = %s",
            [keys.organization_id],
        )
    first = s3.list_multipart_uploads(Bucket=bucket, Delimiter="/")
    assert (first["IsTruncated"], first["NextKeyMarker"]) == (True, "g0999/")
    rest = s3.list_multipart_uploads(Bucket=bucket, Delimiter="/", KeyMarker="g0999/")
    found = [each["Prefix"] for page in (first, rest) for each in page["CommonPrefixes"]]
    assert (found, rest["IsTruncated"]) == ([f"g{n:04}/" for n in range(1010)], False)


def test_aborting_an_upload_deletes_its_files(cluster: Cluster, s3: Any, bucket: str) -> None:
    before = parts_of(cluster)
    upload = Upload(s3)
    upload.add(1, b"x")
    s3.abort_multipart_upload(**upload.options)
    until(lambda: parts_of(cluster) <= before)
    for work in (
        lambda: upload.add(2, b"y"),
        upload.complete,
        lambda: s3.list_parts(**upload.options),
        lambda: s3.abort_multipart_upload(**upload.options),
    ):
        assert refused(work) == (404, "NoSuchUpload")
    until(lambda: parts_of(cluster) <= before)


@pytest.mark.parametrize("alter", [flip, cut, Path.unlink])
def test_a_damaged_part_has_to_be_uploaded_again(
    cluster: Cluster, s3: Any, bucket: str, alter: Callable[[Path], None]
) -> None:
    before = parts_of(cluster)
    upload = Upload(s3)
    upload.add(1, b"content")
    (file,) = parts_of(cluster) - before
    alter(file)
    for _ in range(2):
        assert refused(upload.complete) == (400, "InvalidPart")
    upload.add(1, b"content")
    upload.complete()
    assert s3.get_object(Bucket=bucket, Key="big")["Body"].read() == b"content"


def test_deleting_a_bucket_aborts_its_uploads(cluster: Cluster, s3: Any, bucket: str) -> None:
    before = parts_of(cluster)
    upload = Upload(s3)
    upload.add(1, b"x")
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    assert refused(lambda: s3.delete_bucket(Bucket=bucket)) == (409, "BucketNotEmpty")
    upload.add(2, b"still there")
    s3.delete_object(Bucket=bucket, Key="k")
    s3.delete_bucket(Bucket=bucket)
    until(lambda: parts_of(cluster) <= before)
    s3.create_bucket(Bucket=bucket)
    assert refused(upload.complete) == (404, "NoSuchUpload")


@pytest.mark.slow
def test_a_wrong_list_of_parts_is_refused(s3: Any, bucket: str) -> None:
    upload = Upload(s3)
    one, two = upload.add(1, BODIES[0]), upload.add(2, BODIES[2])
    last = upload.add(3, BODIES[2])
    for parts, code in (
        ([], "MalformedXML"),
        ([two, one], "InvalidPartOrder"),
        ([one, one], "InvalidPartOrder"),
        ([one, two, last], "EntityTooSmall"),
        ([one, {"PartNumber": 9, "ETag": one["ETag"]}], "InvalidPart"),
        ([{"PartNumber": 1, "ETag": '"00000000000000000000000000000000"'}], "InvalidPart"),
        ([{**one, "ChecksumCRC32": "AAAAAA=="}], "InvalidPart"),
    ):
        assert refused(partial(upload.complete, parts)) == (400, code)
    upload.complete([one, last])
    assert s3.head_object(Bucket=bucket, Key="big")["ContentLength"] == PART + 1000


def test_invalid_requests_for_an_upload_are_refused(signer: Signer, s3: Any, bucket: str) -> None:
    upload = Upload(s3)
    target = f"/docs/big?partNumber=1&uploadId={upload.id}"
    for query, status, code in (
        (f"partNumber=0&uploadId={upload.id}", 400, "InvalidArgument"),
        (f"partNumber=10001&uploadId={upload.id}", 400, "InvalidArgument"),
        (f"partNumber=x&uploadId={upload.id}", 400, "InvalidArgument"),
        ("partNumber=1&uploadId=", 404, "NoSuchUpload"),
        ("partNumber=1&uploadId=nothing", 404, "NoSuchUpload"),
    ):
        answer = signer.send("PUT", f"/docs/big?{query}", b"x")
        assert (answer.status, answer.code) == (status, code), query
    # It does not exist for another key.
    other = signer.send("PUT", target.replace("big", "other"), b"x")
    assert other.code == "NoSuchUpload"
    headers = signer.sign("PUT", target, {"content-length": str(5 * 2**30 + 1)})
    oversized = send(signer.url, "PUT", target, headers)
    assert (oversized.status, oversized.code) == (400, "EntityTooLarge")
    for body, code in ((b"<a/>", "MalformedXML"), (b"<CompleteMultipartUpload>", "MalformedXML")):
        answer = signer.send("POST", f"/docs/big?uploadId={upload.id}", body)
        assert (answer.status, answer.code) == (400, code)


def test_another_tenant_cannot_use_an_upload(cluster: Cluster, s3: Any, bucket: str) -> None:
    upload = Upload(s3)
    charlie = Signer(cluster.tenant(), cluster.url)
    assert charlie.send("PUT", "/docs").status == 200
    query = f"uploadId={upload.id}"
    for method, target in (
        ("PUT", f"/docs/big?partNumber=1&{query}"),
        ("DELETE", f"/docs/big?{query}"),
        ("GET", f"/docs/big?{query}"),
    ):
        assert charlie.send(method, target).code == "NoSuchUpload"
    upload.add(1, b"still there")
    upload.complete()


def test_completing_twice_returns_the_same(s3: Any, bucket: str) -> None:
    upload = Upload(s3)
    upload.add(1, b"x")
    first = upload.complete()
    again = upload.complete()
    assert again["ETag"] == first["ETag"]
    s3.put_object(Bucket=bucket, Key="big", Body=b"other")
    assert refused(upload.complete) == (404, "NoSuchUpload")


@pytest.mark.slow
def test_completing_and_aborting_concurrently_does_one_of_both(s3: Any, bucket: str) -> None:
    for _ in range(5):
        upload = Upload(s3, "raced")
        upload.add(1, b"x" * 100)
        results: list[str] = []

        def attempt(name: str, work: Callable[[], Any], results: list[str] = results) -> None:
            try:
                work()
                results.append(name)
            except ClientError as error:
                results.append(error.response["Error"]["Code"])

        threads = [
            threading.Thread(target=attempt, args=("completed", upload.complete)),
            threading.Thread(
                target=attempt,
                args=("aborted", partial(s3.abort_multipart_upload, **upload.options)),
            ),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(results) <= {"completed", "aborted", "NoSuchUpload"}
        assert {"completed", "aborted"} & set(results)
        if "completed" in results:
            assert s3.get_object(Bucket=bucket, Key="raced")["Body"].read() == b"x" * 100
        assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)


def test_a_completion_applies_its_conditions(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="big", Body=b"there")
    upload = Upload(s3)
    upload.add(1, b"x")
    code = refused(lambda: upload.complete(IfNoneMatch="*"))
    assert code == (412, "PreconditionFailed")
    assert s3.get_object(Bucket=bucket, Key="big")["Body"].read() == b"there"
    upload.complete()


def test_parts_are_copied_from_objects(s3: Any, bucket: str) -> None:
    content = os.urandom(6 * 2**20)
    s3.put_object(Bucket=bucket, Key="source", Body=content)
    upload = Upload(s3)
    source = {"Bucket": bucket, "Key": "source"}
    first = s3.upload_part_copy(
        **upload.options, PartNumber=1, CopySource=source, CopySourceRange=f"bytes=0-{PART - 1}"
    )
    rest = s3.upload_part_copy(
        **upload.options, PartNumber=2, CopySource=source, CopySourceRange=f"bytes={PART}-6291455"
    )
    parts = [
        {"PartNumber": number, "ETag": answer["CopyPartResult"]["ETag"]}
        for number, answer in enumerate((first, rest), 1)
    ]
    upload.complete(parts)
    assert s3.get_object(Bucket=bucket, Key="big")["Body"].read() == content
    for asked, said in (
        ("bytes=0-6291456", (416, "InvalidRange")),
        ("bytes=5-1", (400, "InvalidArgument")),
        ("bytes=-5", (400, "InvalidArgument")),
    ):
        again = Upload(s3)
        copy = partial(s3.upload_part_copy, **again.options, PartNumber=1, CopySource=source)
        assert refused(partial(copy, CopySourceRange=asked)) == said
