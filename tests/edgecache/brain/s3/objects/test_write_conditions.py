"""Conditions of writes and deletes: what does not hold changes nothing, and is named."""

import base64
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.edgecache.brain.s3.multipart.support import Upload, refused
from tests.edgecache.brain.s3.raw import Answer, Signer, md5
from tests.edgecache.cluster import Cluster, Keys

FAILED = (412, "PreconditionFailed")
ROUNDS = 12


@pytest.fixture
def signer(cluster: Cluster, keys: Keys, bucket: str) -> Signer:
    """Return a signer of the tenant."""
    return Signer(keys, cluster.url)


def put(s3: Any, key: str = "k", body: bytes = b"bytes") -> str:
    """Write an object; return its ETag."""
    etag: str = s3.put_object(Bucket="docs", Key=key, Body=body)["ETag"]
    return etag


def stored(s3: Any) -> list[str]:
    """Return the keys of the bucket."""
    return [row["Key"] for row in s3.list_objects_v2(Bucket="docs").get("Contents", [])]


def deleted(s3: Any, *objects: dict[str, Any], **options: Any) -> tuple[list[str], dict[str, str]]:
    """Delete by one request; return the deleted keys, and the codes of errors by key."""
    answer = s3.delete_objects(Bucket="docs", Delete={"Objects": objects, **options})
    errors = {row["Key"]: row["Code"] for row in answer.get("Errors", [])}
    return [row["Key"] for row in answer.get("Deleted", [])], errors


def test_an_object_is_deleted_if_it_has_the_etag(s3: Any, bucket: str) -> None:
    older = put(s3, body=b"older")
    etag = put(s3)
    delete = partial(s3.delete_object, Bucket=bucket, Key="k")
    for wrong in (older, '"other"'):
        assert refused(partial(delete, IfMatch=wrong)) == FAILED
        assert stored(s3) == ["k"]
    delete(IfMatch=etag)
    assert stored(s3) == []
    assert refused(partial(delete, IfMatch=etag)) == FAILED


def test_an_object_is_deleted_if_it_exists(s3: Any, bucket: str) -> None:
    delete = partial(s3.delete_object, Bucket=bucket, Key="k", IfMatch="*")
    assert refused(delete) == FAILED
    put(s3)
    delete()
    assert stored(s3) == []


def test_each_object_of_a_list_is_deleted_by_its_own_condition(s3: Any, bucket: str) -> None:
    etags = {key: put(s3, key, key.encode()) for key in ("a", "b", "c", "d", "e")}
    rows = [
        {"Key": "a", "ETag": etags["a"]},
        {"Key": "b", "ETag": etags["a"]},
        {"Key": "c", "ETag": "*"},
        {"Key": "absent", "ETag": "*"},
        {"Key": "gone", "ETag": etags["a"]},
        {"Key": "d"},
    ]
    keys, errors = deleted(s3, *rows)
    assert keys == ["a", "c", "d"]
    assert errors == dict.fromkeys(["b", "absent", "gone"], "PreconditionFailed")
    assert stored(s3) == ["b", "e"]
    assert deleted(s3, {"Key": "b", "ETag": "other"}, Quiet=True) == ([], {"b": FAILED[1]})
    assert deleted(s3, {"Key": "b", "ETag": etags["b"]}, Quiet=True) == ([], {})
    assert stored(s3) == ["e"]


def test_a_condition_twice_in_a_list_is_answered_for_each(s3: Any, bucket: str) -> None:
    etag = put(s3)
    rows = [{"Key": "k", "ETag": "other"}, {"Key": "k", "ETag": etag}]
    assert deleted(s3, *rows) == (["k"], {"k": "PreconditionFailed"})


def test_a_condition_names_one_etag(signer: Signer, s3: Any) -> None:
    etag = put(s3)
    for value in ("", f'{etag}, "other"'):
        for method, name in (
            ("DELETE", "if-match"),
            ("PUT", "if-match"),
            ("PUT", "if-none-match"),
        ):
            answer = signer.send(method, "/docs/k", headers={name: value})
            assert (answer.status, answer.code) == (400, "InvalidArgument")
        body = f"<Delete><Object><Key>k</Key><ETag>{value}</ETag></Object></Delete>".encode()
        digest = {"content-md5": base64.b64encode(md5(body)).decode()}
        assert signer.send("POST", "/docs?delete", body, digest).code == "InvalidArgument"
    both = signer.send("PUT", "/docs/k", headers={"if-match": etag, "if-none-match": '"other"'})
    assert (both.status, both.code) == (400, "InvalidArgument")
    assert s3.get_object(Bucket="docs", Key="k")["Body"].read() == b"bytes"


def test_an_object_is_deleted_if_it_has_the_time_and_the_size(s3: Any, bucket: str) -> None:
    etag = put(s3)
    time = s3.head_object(Bucket=bucket, Key="k")["LastModified"]
    delete = partial(s3.delete_object, Bucket=bucket, Key="k")
    for wrong in (
        {"IfMatchSize": 6},
        {"IfMatchLastModifiedTime": time + timedelta(seconds=1)},
        {"IfMatchSize": 5, "IfMatchLastModifiedTime": time, "IfMatch": '"other"'},
        {"IfMatchSize": 6, "IfMatchLastModifiedTime": time, "IfMatch": etag},
    ):
        assert refused(partial(delete, **wrong)) == FAILED
    assert stored(s3) == ["k"]
    delete(IfMatchSize=5, IfMatchLastModifiedTime=time, IfMatch=etag)
    assert stored(s3) == []
    delete(IfMatchSize=5, IfMatchLastModifiedTime=time)


def test_each_object_of_a_list_is_deleted_by_its_time_and_size(s3: Any, bucket: str) -> None:
    etags = {key: put(s3, key, key.encode()) for key in ("a", "bb", "ccc", "dddd")}
    time = s3.head_object(Bucket=bucket, Key="a")["LastModified"]
    rows: list[dict[str, Any]] = [
        {"Key": "a", "Size": 1, "LastModifiedTime": time},
        {"Key": "bb", "Size": 1},
        {"Key": "ccc", "Size": 3, "ETag": etags["ccc"]},
        {"Key": "dddd", "LastModifiedTime": time - timedelta(days=1)},
        {"Key": "absent", "Size": 1},
    ]
    keys, errors = deleted(s3, *rows)
    assert keys == ["a", "ccc", "absent"]
    assert errors == dict.fromkeys(["bb", "dddd"], "PreconditionFailed")
    assert stored(s3) == ["bb", "dddd"]


def test_a_time_is_compared_to_the_second_in_each_form(signer: Signer, s3: Any) -> None:
    for form in (
        "%Y-%m-%dT%H:%M:%SZ",
        "%Y-%m-%dT%H:%M:%S.250+00:00",
        "%a, %d %b %Y %H:%M:%S GMT",
        "%d %b %Y %H:%M:%S +0000",
    ):
        put(s3)
        text = s3.head_object(Bucket="docs", Key="k")["LastModified"].strftime(form)
        headers = {"x-amz-if-match-last-modified-time": text}
        assert (form, signer.send("DELETE", "/docs/k", headers=headers).status) == (form, 204)
        assert stored(s3) == []


def test_a_malformed_condition_deletes_nothing(signer: Signer, s3: Any) -> None:
    put(s3)
    time, size = "x-amz-if-match-last-modified-time", "x-amz-if-match-size"
    for header, element, value in (
        (time, "LastModifiedTime", ""),
        (time, "LastModifiedTime", "5"),
        (time, "LastModifiedTime", "2026-01-01"),
        (time, "LastModifiedTime", "2026-13-01T00:00:00Z"),
        (time, "LastModifiedTime", "0001-01-01T00:00:00+23:00"),
        (size, "Size", ""),
        (size, "Size", "-5"),
        (size, "Size", "5.0"),
        (size, "Size", "5" * 5000),
    ):
        one = signer.send("DELETE", "/docs/k", headers={header: value})
        assert (value[:30], one.status, one.code) == (value[:30], 400, "InvalidArgument")
        row = f"<Key>k</Key><{element}>{value}</{element}>"
        body = f"<Delete><Object>{row}</Object></Delete>".encode()
        digest = {"content-md5": base64.b64encode(md5(body)).decode()}
        assert signer.send("POST", "/docs?delete", body, digest).code == "InvalidArgument"
    assert stored(s3) == ["k"]


def test_a_delete_names_the_conditions_of_which_one_failed(signer: Signer, s3: Any) -> None:
    wanted = {"if-match": put(s3), "x-amz-if-match-size": "6"}
    answer = signer.send("DELETE", "/docs/k", headers=wanted)
    named = answer.text("Condition")
    assert (answer.status, named) == (412, "If-Match, x-amz-if-match-size")


def test_an_object_is_written_unless_it_has_the_etag(s3: Any, bucket: str) -> None:
    put(s3, "source", b"source")

    def write(body: bytes, etag: str) -> str:
        return str(s3.put_object(Bucket=bucket, Key="k", Body=body, IfNoneMatch=etag)["ETag"])

    def copy(_: bytes, etag: str) -> str:
        answer = s3.copy_object(
            Bucket=bucket, Key="k", CopySource=f"{bucket}/source", IfNoneMatch=etag
        )
        return str(answer["CopyObjectResult"]["ETag"])

    def complete(body: bytes, etag: str) -> str:
        upload = Upload(s3, "k")
        upload.add(1, body)
        return str(upload.complete(IfNoneMatch=etag)["ETag"])

    etag = write(b"absent", '"other"')
    for number, made in enumerate((write, complete, copy)):
        body = b"%d" % number
        for same in (etag, etag.strip('"'), f"W/{etag}"):
            assert refused(partial(made, body, same)) == FAILED
        etag = made(body, '"other"')
        assert s3.head_object(Bucket=bucket, Key="k")["ETag"] == etag


def test_of_concurrent_changes_with_one_etag_one_is_made(signer: Signer, s3: Any) -> None:
    with ThreadPoolExecutor(6) as threads:
        for turn in range(ROUNDS):
            condition = {"if-match": put(s3, body=b"%d" % turn)}
            body = f"<Delete><Object><Key>k</Key><ETag>{condition['if-match']}</ETag></Object>"
            rows = f"{body}</Delete>".encode()
            digest = {"content-md5": base64.b64encode(md5(rows)).decode()}
            calls: list[Callable[[], Answer]] = [
                partial(signer.send, "DELETE", "/docs/k", headers=condition),
                partial(signer.send, "PUT", "/docs/k", b"newer", condition),
                partial(signer.send, "POST", "/docs?delete", rows, digest),
            ]
            answers = [*threads.map(lambda call: call(), calls * 2)]
            made = [each for each in answers if each.status < 300 and not each.code]
            assert len(made) == 1
            assert stored(s3) == (["k"] if "etag" in made[0].headers else [])


def test_a_write_names_the_condition_that_failed(signer: Signer, s3: Any) -> None:
    put(s3, "source")
    upload = Upload(s3, "k")
    upload.add(1, b"part")
    etag = upload.parts[0]["ETag"]
    parts = (
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber>"
        f"<ETag>{etag.strip(chr(34))}</ETag></Part></CompleteMultipartUpload>"
    ).encode()
    copy = {"x-amz-copy-source": "docs/source"}
    for name, value in (
        ("If-None-Match", "*"),
        ("If-None-Match", put(s3)),
        ("If-Match", '"other"'),
    ):
        for method, target, body, headers in (
            ("PUT", "/docs/k", b"other", {}),
            ("PUT", "/docs/k", b"", copy),
            ("POST", f"/docs/k?uploadId={upload.options['UploadId']}", parts, {}),
            ("DELETE", "/docs/k", b"", {}),
        ):
            if (method, name) == ("DELETE", "If-None-Match"):
                continue
            answer = signer.send(method, target, body, {**headers, name.lower(): value})
            assert (answer.status, answer.code, answer.text("Condition")) == (*FAILED, name)
    assert s3.get_object(Bucket="docs", Key="k")["Body"].read() == b"bytes"


def test_a_copy_names_the_condition_of_its_source(signer: Signer, s3: Any) -> None:
    etag = put(s3)
    for name, value in (
        ("If-Match", '"other"'),
        ("If-None-Match", etag),
        ("If-Unmodified-Since", "Tue, 01 Jan 2019 00:00:00 GMT"),
        ("If-Modified-Since", "Fri, 01 Jan 2038 00:00:00 GMT"),
    ):
        headers = {"x-amz-copy-source": "docs/k", f"x-amz-copy-source-{name.lower()}": value}
        answer = signer.send("PUT", "/docs/copy", headers=headers)
        condition = answer.text("Condition")
        assert (answer.code, condition) == (FAILED[1], f"x-amz-copy-source-{name}")


def test_a_copy_to_an_absent_key_names_that_key(s3: Any, bucket: str) -> None:
    put(s3)
    for source, absent in (("k", "copy"), ("nothing", "nothing")):
        with pytest.raises(ClientError) as error:
            s3.copy_object(
                Bucket=bucket, Key="copy", CopySource=f"{bucket}/{source}", IfMatch='"x"'
            )
        said = error.value.response["Error"]
        assert (said["Code"], said["Key"]) == ("NoSuchKey", absent)


def test_an_error_names_the_bucket_and_the_upload(signer: Signer) -> None:
    listed = signer.send("GET", "/absent?list-type=2")
    assert (listed.code, listed.text("BucketName")) == ("NoSuchBucket", "absent")
    parts = signer.send("GET", "/docs/k?uploadId=nothing")
    assert (parts.code, parts.text("UploadId")) == ("NoSuchUpload", "nothing")
