"""Objects: put, get, head, ranges, conditions, metadata, deletion."""

import base64
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.edgecache.brain.s3.raw import Signer, md5, send
from tests.edgecache.cluster import Cluster, Keys

BODY = bytes(range(256)) * 5


def code_of(error: ClientError) -> tuple[int, str]:
    """Return status and code."""
    return error.response["ResponseMetadata"]["HTTPStatusCode"], error.response["Error"]["Code"]


@pytest.fixture
def signer(cluster: Cluster, keys: Keys, bucket: str) -> Signer:
    """Return a signer of the tenant."""
    return Signer(keys, cluster.url)


@pytest.fixture
def stored(s3: Any, bucket: str) -> Mapping[str, Any]:
    """Return the response to the upload of ``thing``."""
    answer: Mapping[str, Any] = s3.put_object(
        Bucket=bucket,
        Key="thing",
        Body=BODY,
        ContentType="image/png",
        CacheControl="max-age=60",
        ContentDisposition='attachment; filename="x.png"',
        ContentLanguage="de",
        Metadata={"colour": "blue", "size": "12"},
    )
    return answer


def test_an_object_is_read_as_it_was_written(
    s3: Any, bucket: str, stored: Mapping[str, Any]
) -> None:
    found = s3.get_object(Bucket=bucket, Key="thing")
    assert found["Body"].read() == BODY
    assert found["ETag"] == stored["ETag"] == f'"{md5(BODY).hex()}"'
    assert found["ContentType"] == "image/png"
    assert found["CacheControl"] == "max-age=60"
    assert found["ContentDisposition"] == 'attachment; filename="x.png"'
    assert found["ContentLanguage"] == "de"
    assert found["Metadata"] == {"colour": "blue", "size": "12"}
    assert abs(datetime.now(UTC) - found["LastModified"]) < timedelta(seconds=20)


def test_a_head_returns_the_same_headers_without_a_body(
    s3: Any, bucket: str, stored: Mapping[str, Any]
) -> None:
    head = s3.head_object(Bucket=bucket, Key="thing", ChecksumMode="ENABLED")
    assert head["ContentLength"] == len(BODY)
    assert head["Metadata"] == {"colour": "blue", "size": "12"}
    assert head["ChecksumCRC32"] == base64.b64encode(zlib.crc32(BODY).to_bytes(4, "big")).decode()


def test_an_object_may_be_empty(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="empty", Body=b"")
    found = s3.get_object(Bucket=bucket, Key="empty")
    assert (found["ContentLength"], found["Body"].read()) == (0, b"")
    with pytest.raises(ClientError) as refused:
        s3.get_object(Bucket=bucket, Key="empty", Range="bytes=0-")
    assert code_of(refused.value) == (416, "InvalidRange")


def test_a_second_put_replaces_the_first(s3: Any, bucket: str) -> None:
    for content in (b"one", b"two"):
        s3.put_object(Bucket=bucket, Key="k", Body=content)
        assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == content


def test_an_absent_key_is_no_such_key(signer: Signer) -> None:
    answer = signer.send("GET", "/docs/absent")
    assert (answer.status, answer.code, answer.text("Key")) == (404, "NoSuchKey", "absent")
    head = signer.send("HEAD", "/docs/absent")
    assert (head.status, head.body) == (404, b"")


RANGES = [
    ("bytes=0-0", BODY[:1], "bytes 0-0/1280"),
    ("bytes=10-19", BODY[10:20], "bytes 10-19/1280"),
    ("bytes=1270-", BODY[1270:], "bytes 1270-1279/1280"),
    ("bytes=-5", BODY[-5:], "bytes 1275-1279/1280"),
    ("bytes=-5000", BODY, "bytes 0-1279/1280"),
    ("bytes=1000-999999", BODY[1000:], "bytes 1000-1279/1280"),
]


def test_a_range_returns_its_bytes(s3: Any, bucket: str, stored: Mapping[str, Any]) -> None:
    for asked, content, said in RANGES:
        found = s3.get_object(Bucket=bucket, Key="thing", Range=asked)
        assert found["ResponseMetadata"]["HTTPStatusCode"] == 206
        assert (found["Body"].read(), found["ContentRange"]) == (content, said)
        head = s3.head_object(Bucket=bucket, Key="thing", Range=asked)
        assert (head["ContentLength"], head["ContentRange"]) == (len(content), said)


@pytest.mark.parametrize("asked", ["bytes=1280-", "bytes=99999-100000", "bytes=-0"])
def test_a_range_after_the_end_is_refused(
    signer: Signer, stored: Mapping[str, Any], asked: str
) -> None:
    answer = signer.send("GET", "/docs/thing", headers={"range": asked})
    assert (answer.status, answer.code) == (416, "InvalidRange")
    assert answer.headers["content-range"] == "bytes */1280"
    assert answer.text("ActualObjectSize") == "1280"


def test_an_invalid_range_is_ignored(signer: Signer, stored: Mapping[str, Any]) -> None:
    for asked in ["bytes=5-1", "bytes=a-b", "lines=1-2", "bytes=0-1,5-6", "x"]:
        answer = signer.send("GET", "/docs/thing", headers={"range": asked})
        assert (answer.status, answer.body) == (200, BODY)


def test_if_range_with_another_version_returns_the_whole_object(
    signer: Signer, stored: Mapping[str, Any]
) -> None:
    asked = {"range": "bytes=0-1", "if-range": '"other"'}
    assert signer.send("GET", "/docs/thing", headers=asked).status == 200
    asked["if-range"] = stored["ETag"]
    assert signer.send("GET", "/docs/thing", headers=asked).status == 206


def test_a_read_applies_its_conditions(s3: Any, signer: Signer, stored: Mapping[str, Any]) -> None:
    etag = stored["ETag"]
    modified = s3.head_object(Bucket="docs", Key="thing")["LastModified"].astimezone(UTC)
    then = format_datetime(modified, usegmt=True)
    before = format_datetime(modified - timedelta(hours=1), usegmt=True)
    for headers, status in (
        ({"if-match": etag}, 200),
        ({"if-match": f'"x", {etag}'}, 200),
        ({"if-match": "*"}, 200),
        ({"if-match": '"other"'}, 412),
        ({"if-none-match": etag}, 304),
        ({"if-none-match": "*"}, 304),
        ({"if-none-match": '"other"'}, 200),
        ({"if-modified-since": before}, 200),
        ({"if-modified-since": then}, 304),
        ({"if-unmodified-since": before}, 412),
        ({"if-unmodified-since": then}, 200),
        ({"if-match": etag, "if-unmodified-since": before}, 200),
        ({"if-none-match": etag, "if-modified-since": before}, 304),
        ({"if-none-match": '"other"', "if-modified-since": then}, 200),
        ({"if-modified-since": "gibberish"}, 200),
    ):
        for method in ("GET", "HEAD"):
            answer = signer.send(method, "/docs/thing", headers=headers)
            assert answer.status == status, (method, headers)
            if status == 304:
                assert (answer.body, answer.headers["etag"]) == (b"", etag)
            if status == 412 and method == "GET":
                assert answer.code == "PreconditionFailed"


def test_a_write_applies_its_conditions(s3: Any, bucket: str) -> None:
    first = s3.put_object(Bucket=bucket, Key="k", Body=b"1", IfNoneMatch="*")
    for condition, status, code in (
        ({"IfNoneMatch": "*"}, 412, "PreconditionFailed"),
        ({"IfMatch": '"other"'}, 412, "PreconditionFailed"),
        ({"IfNoneMatch": first["ETag"]}, 412, "PreconditionFailed"),
    ):
        with pytest.raises(ClientError) as refused:
            s3.put_object(Bucket=bucket, Key="k", Body=b"2", **condition)
        assert code_of(refused.value) == (status, code)
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"1"
    s3.put_object(Bucket=bucket, Key="k", Body=b"3", IfMatch=first["ETag"])
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"3"
    with pytest.raises(ClientError) as refused:
        s3.put_object(Bucket=bucket, Key="absent", Body=b"2", IfMatch='"x"')
    assert code_of(refused.value) == (404, "NoSuchKey")


def test_the_query_replaces_headers_of_signed_requests_only(
    s3: Any, cluster: Cluster, bucket: str, stored: Mapping[str, Any]
) -> None:
    url = s3.generate_presigned_url(
        "get_object",
        Params={
            "Bucket": bucket,
            "Key": "thing",
            "ResponseContentType": "text/plain",
            "ResponseContentDisposition": "inline; filename*=UTF-8''%C3%BC.txt",
            "ResponseCacheControl": "no-store",
        },
    )
    answer = send(cluster.url, "GET", url.removeprefix(cluster.url))
    assert answer.body == BODY
    assert answer.headers["content-type"] == "text/plain"
    assert answer.headers["content-disposition"] == "inline; filename*=UTF-8''%C3%BC.txt"
    assert answer.headers["cache-control"] == "no-store"


def test_a_replaced_header_cannot_split_the_response(
    signer: Signer, stored: Mapping[str, Any]
) -> None:
    target = "/docs/thing?response-content-type=text%2Fplain%0D%0Aset-cookie%3A%20a%3Db"
    answer = signer.send("GET", target)
    assert (answer.status, answer.code) == (400, "InvalidArgument")
    assert "set-cookie" not in answer.headers


def test_metadata_beyond_ascii_and_beyond_its_limit(signer: Signer, s3: Any) -> None:
    spoken = {"x-amz-meta-name": "M\u00fcller".encode().decode("latin-1")}
    headers = signer.sign("PUT", "/docs/m", payload="UNSIGNED-PAYLOAD")
    # Not signed, so that the encoding of the bytes does not matter.
    answer = send(signer.url, "PUT", "/docs/m", headers | spoken, b"x")
    assert answer.code == "AccessDenied"
    with pytest.raises(ClientError) as refused:
        s3.put_object(Bucket="docs", Key="m", Body=b"x", Metadata={"long": "x" * 2048})
    assert code_of(refused.value) == (400, "MetadataTooLarge")


def test_an_unsupported_header_is_refused(signer: Signer) -> None:
    for headers, status, code in [
        ({"x-amz-acl": "public-read"}, 400, "AccessControlListNotSupported"),
        ({"x-amz-server-side-encryption": "AES256"}, 501, "NotImplemented"),
        ({"x-amz-storage-class": "GLACIER"}, 400, "InvalidStorageClass"),
        ({"x-amz-object-lock-mode": "GOVERNANCE"}, 501, "NotImplemented"),
        ({"x-amz-expected-bucket-owner": "123456789012"}, 403, "AccessDenied"),
    ]:
        answer = signer.send("PUT", "/docs/k", b"x", headers)
        assert (answer.status, answer.code) == (status, code)
        assert signer.send("GET", "/docs/k").code == "NoSuchKey"


SUBRESOURCES = (
    "acl",
    "cors",
    "lifecycle",
    "policy",
    "retention",
    "tagging",
    "torrent",
    "versioning",
)


def test_a_subresource_is_never_taken_for_its_object(signer: Signer) -> None:
    signer.send("PUT", "/docs/a", b"bytes")
    for target, method in (
        *((f"/docs?{query}=", "POST") for query in SUBRESOURCES),
        *((f"/docs/a?{query}=", "POST") for query in SUBRESOURCES),
        ("/docs/a?torrent=", "GET"),
        ("/docs/a?policy=", "GET"),
        ("/docs/a?cors=", "PUT"),
        ("/docs/a?versioning=", "DELETE"),
        ("/docs?acl=", "DELETE"),
        ("/docs/a?uploadId=x&acl=", "PUT"),
        ("/docs?list-type=2&torrent=", "GET"),
    ):
        answer = signer.send(method, target)
        assert (answer.status, answer.code) == (501, "NotImplemented"), (method, target)
    for target in ("/docs/a?acl=", "/docs?versioning=", "/docs?lifecycle="):
        assert signer.send("PUT", target).code == "MalformedXML", target
    assert signer.send("GET", "/docs/a").body == b"bytes"


def test_an_unknown_method_is_refused(signer: Signer) -> None:
    for method, status in (("PATCH", 405), ("OPTIONS", 400), ("POST", 501)):
        assert signer.send(method, "/docs/a").status == status


def test_deletion_is_idempotent(s3: Any, bucket: str, stored: Mapping[str, Any]) -> None:
    for _ in range(2):
        answer = s3.delete_object(Bucket=bucket, Key="thing")
        assert answer["ResponseMetadata"]["HTTPStatusCode"] == 204
    with pytest.raises(ClientError) as refused:
        s3.get_object(Bucket=bucket, Key="thing")
    assert code_of(refused.value) == (404, "NoSuchKey")


def test_the_null_version_is_the_current_one(
    s3: Any, bucket: str, stored: Mapping[str, Any]
) -> None:
    assert s3.get_object(Bucket=bucket, Key="thing", VersionId="null")["Body"].read() == BODY
    with pytest.raises(ClientError) as refused:
        s3.get_object(Bucket=bucket, Key="thing", VersionId="abc")
    assert code_of(refused.value) == (400, "InvalidArgument")


def test_many_objects_are_deleted_by_one_request(s3: Any, bucket: str) -> None:
    for number in range(3):
        s3.put_object(Bucket=bucket, Key=f"k{number}", Body=b"x")
    answer = s3.delete_objects(
        Bucket=bucket,
        Delete={
            "Objects": [
                {"Key": "k0"},
                {"Key": "absent"},
                {"Key": "k1", "VersionId": "other"},
                {"Key": "x" * 1025},
            ]
        },
    )
    assert [row["Key"] for row in answer["Deleted"]] == ["k0", "absent"]
    assert {row["Key"][:5]: row["Code"] for row in answer["Errors"]} == {
        "k1": "NoSuchVersion",
        "xxxxx": "KeyTooLongError",
    }
    quiet = s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "k1"}], "Quiet": True})
    assert "Deleted" not in quiet
    listed = s3.list_objects_v2(Bucket=bucket)["Contents"]
    assert [row["Key"] for row in listed] == ["k2"]


BAD_XML = [
    b"",
    b"<Delete>",
    b"<Other/>",
    b"<Delete></Delete>",
    b"<Delete><Object><Key>a</Key></Object>",
    b"<Delete>" + b"<Object><Key>a</Key></Object>" * 1001 + b"</Delete>",
    (
        b'<!DOCTYPE d [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
        b"<Delete><Object><Key>&e;</Key></Object></Delete>"
    ),
    (
        b'<!DOCTYPE d [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]>'
        b"<Delete><Object><Key>&b;</Key></Object></Delete>"
    ),
    b"<Delete>" + b"<a>" * 100 + b"</a>" * 100 + b"</Delete>",
    b"\xff\xfe\x00",
]


def test_bad_xml_is_refused(signer: Signer) -> None:
    for body in BAD_XML:
        digest = base64.b64encode(md5(body)).decode()
        answer = signer.send("POST", "/docs?delete=", body, {"content-md5": digest})
        assert (answer.status, answer.code) == (400, "MalformedXML")
        assert b"root:" not in answer.body


def test_deleting_many_objects_requires_a_digest(signer: Signer) -> None:
    body = b"<Delete><Object><Key>a</Key></Object></Delete>"
    answer = signer.send("POST", "/docs?delete=", body)
    assert (answer.status, answer.code) == (400, "InvalidRequest")


def test_an_overlong_xml_body_is_refused(signer: Signer) -> None:
    answer = signer.send("POST", "/docs?delete=", b"<" * (2**22 + 1))
    assert (answer.status, answer.code) == (400, "MaxMessageLengthExceeded")


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("deflate, gzip", "deflate, gzip"),
        ("a,b", "a,b"),
        ("aws-chunked, deflate,gzip", "deflate, gzip"),
        ("aws-chunked", None),
    ],
)
def test_content_codings_are_kept_as_they_are_sent(
    s3: Any, bucket: str, sent: str, kept: str | None
) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"bytes", ContentEncoding=sent)
    assert s3.head_object(Bucket=bucket, Key="k").get("ContentEncoding") == kept
