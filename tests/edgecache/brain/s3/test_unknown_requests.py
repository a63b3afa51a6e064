"""What an operation does not take is refused by its name, and nothing changes."""

import base64
import zlib
from collections.abc import Mapping
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.edgecache.brain.s3.multipart.support import Upload
from tests.edgecache.brain.s3.raw import UNSIGNED, Answer, Signer, md5, send
from tests.edgecache.cluster import Cluster, Keys


@pytest.fixture
def signer(cluster: Cluster, keys: Keys, s3: Any, bucket: str) -> Signer:
    """Return a signer of the tenant, which has a bucket with an object."""
    s3.put_object(Bucket=bucket, Key="k", Body=b"bytes")
    return Signer(keys, cluster.url)


def check_refused(answer: Answer, name: str) -> None:
    """Check that a request was refused, with the name of what it asked for."""
    assert (answer.status, answer.code) == (501, "NotImplemented")
    assert name in answer.text("Message")


def check_unchanged(s3: Any) -> None:
    """Check that the tenant has one bucket with one object, as the fixture made them."""
    assert [row["Name"] for row in s3.list_buckets()["Buckets"]] == ["docs"]
    assert [row["Key"] for row in s3.list_objects_v2(Bucket="docs")["Contents"]] == ["k"]
    assert s3.get_object(Bucket="docs", Key="k")["Body"].read() == b"bytes"
    assert s3.get_object_tagging(Bucket="docs", Key="k")["TagSet"] == []
    with pytest.raises(ClientError, match="NoSuchTagSet"):
        s3.get_bucket_tagging(Bucket="docs")
    assert "Uploads" not in s3.list_multipart_uploads(Bucket="docs")


WRITES = [
    ("PUT", "/docs/k", ""),
    ("PUT", "/docs/k", "tagging"),
    ("DELETE", "/docs/k", ""),
    ("DELETE", "/docs/k", "tagging"),
    ("POST", "/docs/k", "uploads"),
    ("POST", "/docs", "delete"),
    ("PUT", "/another", ""),
    ("PUT", "/docs", "tagging"),
    ("PUT", "/docs", "cors"),
    ("DELETE", "/docs", ""),
    ("DELETE", "/docs", "cors"),
    ("POST", "/docs", ""),
    ("POST", "/docs/k", ""),
]


def test_a_write_takes_no_unknown_parameter(signer: Signer, s3: Any) -> None:
    for method, path, selector in WRITES:
        for name, text in (("brandNew", "brandNew"), ("brand-new", "brand-new=1"), ("ACL", "ACL=")):
            query = "&".join(filter(None, (selector, text)))
            check_refused(signer.send(method, f"{path}?{query}", b"<a/>"), name)
    check_unchanged(s3)


def test_a_write_takes_no_unknown_header(signer: Signer, s3: Any) -> None:
    for method, path, selector in [row for row in WRITES if row[2] or row[0] != "POST"]:
        names = [
            "x-amz-brand-new",
            "x-amz-checksum-brandnew",
            "if-unmodified-since",
            "content-range",
        ]
        for name in names:
            answer = signer.send(method, f"{path}?{selector}", b"<a/>", {name: "1"})
            check_refused(answer, name)
    check_unchanged(s3)


def test_parameters_of_other_operations_replace_no_object(signer: Signer, s3: Any) -> None:
    for query in ["versionId=zzz", "partNumber=3", "uploads", "versions"]:
        name = query.partition("=")[0]
        check_refused(signer.send("PUT", f"/docs/k?{query}", b"other"), name)
    check_unchanged(s3)


def test_a_read_of_an_unknown_operation_is_refused(signer: Signer) -> None:
    for path in ["/docs", "/docs/k", "/docs/"]:
        for query, name in [
            ("brandNew", "brandNew"),
            ("brandNew=", "brandNew"),
            ("brandNew&name=1", "brandNew"),
            ("delete=1", "delete"),
            ("x-amz-acl=private", "x-amz-acl"),
            ("x-id=GetObjectBrandNew", "GetObjectBrandNew"),
            ("versions=1&uploads=1", "versions"),
        ]:
            check_refused(signer.send("GET", f"{path}?{query}"), name)
            check_refused(send(signer.url, "GET", f"{path}?{query}"), name)
            assert signer.send("HEAD", f"{path}?{query}").status == 501


def test_a_read_ignores_what_cannot_be_an_operation(signer: Signer) -> None:
    for query in ["v=123", "1699999999", "_=1&utm_source=mail", "format=json"]:
        assert signer.send("GET", f"/docs/k?{query}").body == b"bytes"
        assert b"<Key>k</Key>" in signer.send("GET", f"/docs?list-type=2&{query}").body


def test_a_later_kind_of_list_is_not_the_first_one(signer: Signer) -> None:
    check_refused(signer.send("GET", "/docs?list-type=3"), "list-type=3")


def test_an_sdk_may_name_the_operation(signer: Signer, s3: Any) -> None:
    # As the SDKs for JavaScript and Go do.
    steps = [
        ("PUT", "/docs/k?x-id=PutObject", 200),
        ("GET", "/docs/k?x-id=GetObject", 200),
        ("GET", "/?x-id=ListBuckets", 200),
        ("DELETE", "/docs/k?x-id=DeleteObject", 204),
        ("PUT", "/docs/k?x-id=CopyObject", 501),
        ("DELETE", "/docs?x-id=DeleteObject", 501),
        ("PUT", "/another?x-id=PutObject", 501),
        ("GET", "/?x-id=ListDirectoryBuckets", 501),
        ("PUT", "/docs/k?x-id=PutObject&x-id=PutObjectAnnotation", 501),
    ]
    for method, target, status in steps:
        assert (target, signer.send(method, target).status) == (target, status)
    assert [row["Name"] for row in s3.list_buckets()["Buckets"]] == ["docs"]


def test_headers_of_sdks_and_proxies_have_no_meaning(signer: Signer) -> None:
    headers = {
        "amz-sdk-invocation-id": "7d1",
        "amz-sdk-request": "attempt=1; max=3",
        "x-amz-api-version": "2006-03-01",
        "x-amz-user-agent": "aws-sdk-js/3",
        "x-amz-request-payer": "requester",
        "x-amzn-trace-id": "Root=1",
        "x-forwarded-for": "192.0.2.1",
        "traceparent": "00-1",
        "cache-control": "no-cache",
    }
    for method, target, status in (
        ("PUT", "/docs/k", 200),
        ("GET", "/docs/k", 200),
        ("GET", "/docs", 200),
        ("PUT", "/another", 200),
        ("DELETE", "/another", 204),
    ):
        assert signer.send(method, target, headers=headers).status == status


CHECKSUMS: list[Mapping[str, str]] = [
    {"x-amz-checksum-sha512": base64.b64encode(bytes(64)).decode()},
    {"x-amz-checksum-xxhash64": base64.b64encode(bytes(8)).decode()},
    {"x-amz-sdk-checksum-algorithm": "SHA512"},
    {"x-amz-checksum-algorithm": "XXHASH3"},
]


def test_a_checksum_that_is_not_computed_is_refused(signer: Signer, s3: Any) -> None:
    for headers in CHECKSUMS:
        tags = b"<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>"
        delete = b"<Delete><Object><Key>k</Key></Object></Delete>"
        for method, target, body in (
            ("PUT", "/docs/k", b"other"),
            ("PUT", "/docs/k?tagging", tags),
            ("POST", "/docs?delete", delete),
            ("POST", "/docs/k?uploads", b""),
        ):
            given = {**headers, "content-md5": base64.b64encode(md5(body)).decode()}
            answer = signer.send(method, target, body, given)
            assert (target, answer.status in {400, 501}) == (target, True)
    check_unchanged(s3)


def test_a_trailer_that_is_not_announced_is_refused(signer: Signer, s3: Any) -> None:
    crc32 = base64.b64encode(zlib.crc32(b"other").to_bytes(4, "big")).decode()
    known, unknown = f"x-amz-checksum-crc32:{crc32}", "x-amz-checksum-sha512:AAAA"
    for announced, lines in (("x-amz-checksum-crc32", [known, unknown]), ("", [unknown])):
        body = b"5\r\nother\r\n0\r\n" + "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n"
        headers = {"x-amz-decoded-content-length": "5"}
        if announced:
            headers["x-amz-trailer"] = announced
        payload = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
        answer = signer.send("PUT", "/docs/k", body, headers, payload=payload)
        assert (answer.status, answer.code) == (400, "MalformedTrailerError")
        assert "sha512" in answer.text("Message")
    check_unchanged(s3)


def test_elements_that_are_not_known_are_refused(signer: Signer, s3: Any) -> None:
    root, key = "CreateBucketConfiguration", "<Object><Key>k</Key>{}</Object>"
    tag = "<Tag><Key>a</Key><Value>b</Value></Tag>"
    rule = "<AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod>"
    for method, target, body in (
        ("POST", "/docs?delete", f"<Delete>{key.format('<New>1</New>')}</Delete>"),
        ("POST", "/docs?delete", f"<Delete>{key.format('')}<New/></Delete>"),
        ("POST", "/docs?delete", f"<Delete>{key.format('<Key>other</Key>')}</Delete>"),
        ("POST", "/docs?delete", "<Delete><Object><Key>k<New>1</New></Key></Object></Delete>"),
        ("PUT", "/docs/k?tagging", f"<Tagging><TagSet>{tag}</TagSet><New/></Tagging>"),
        ("PUT", "/docs?tagging", f"<Tagging><TagSet>{tag}</TagSet><New/></Tagging>"),
        (
            "PUT",
            "/docs?cors",
            f"<CORSConfiguration><CORSRule>{rule}<New/></CORSRule></CORSConfiguration>",
        ),
        ("PUT", "/another", f"<{root}><Bucket><Type>Directory</Type></Bucket></{root}>"),
    ):
        content = body.encode()
        digest = {"content-md5": base64.b64encode(md5(content)).decode()}
        answer = signer.send(method, target, content, digest)
        assert (body, answer.status, answer.code) == (body, 400, "MalformedXML")
    check_unchanged(s3)


def test_conditions_that_are_not_offered_delete_nothing(signer: Signer, s3: Any) -> None:
    for name in ["if-none-match", "x-amz-if-match-metadata", "x-amz-mfa"]:
        check_refused(signer.send("DELETE", "/docs/k", headers={name: "5"}), name)
    check_unchanged(s3)


def test_a_part_s_checksum_of_an_unknown_algorithm_completes_nothing(
    signer: Signer, s3: Any
) -> None:
    upload = Upload(s3, "k")
    upload.add(1, b"part")
    etag = md5(b"part").hex()
    body = (
        f"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{etag}</ETag>"
        "<ChecksumSHA512>AAAA</ChecksumSHA512></Part></CompleteMultipartUpload>"
    ).encode()
    target = f"/docs/k?uploadId={upload.options['UploadId']}"
    answer = signer.send("POST", target, body)
    assert (answer.status, answer.code) == (400, "MalformedXML")
    assert "ChecksumSHA512" in answer.text("Message")
    assert s3.get_object(Bucket="docs", Key="k")["Body"].read() == b"bytes"


def test_a_private_object_in_a_public_bucket_is_refused(
    cluster: Cluster, keys: Keys, signer: Signer, s3: Any
) -> None:
    row = cluster.call("GET", f"/v1/buckets?{keys.scope}")["buckets"][0]
    cluster.call("PATCH", f"/v1/buckets/{row['id']}?{keys.scope}", {"is_public": True})
    options = {"Bucket": "docs", "Key": "k", "ACL": "private"}
    copy = {"CopySource": "docs/k", "MetadataDirective": "REPLACE"}
    for call, more in (("put_object", {}), ("copy_object", copy), ("create_multipart_upload", {})):
        with pytest.raises(ClientError, match=r"AccessControlListNotSupported.*public"):
            getattr(s3, call)(**options, **more)
    check_unchanged(s3)


def test_a_new_bucket_is_what_was_asked_for(s3: Any, bucket: str) -> None:
    s3.create_bucket(
        Bucket="tagged",
        ACL="private",
        ObjectOwnership="BucketOwnerEnforced",
        ObjectLockEnabledForBucket=False,
        CreateBucketConfiguration={
            "LocationConstraint": "eu-central-1",
            "Tags": [{"Key": "team", "Value": "a"}],
        },
    )
    assert s3.get_bucket_tagging(Bucket="tagged")["TagSet"] == [{"Key": "team", "Value": "a"}]
    for refused in (
        {"ObjectOwnership": "ObjectWriter"},
        {"ObjectLockEnabledForBucket": True},
        {"ACL": "public-read"},
        {"GrantRead": 'uri="http://acs.amazonaws.com/groups/global/AllUsers"'},
        {"CreateBucketConfiguration": {"Tags": [{"Key": "aws:a", "Value": "a"}]}},
    ):
        with pytest.raises(ClientError):
            s3.create_bucket(Bucket="another", **refused)
    assert [row["Name"] for row in s3.list_buckets()["Buckets"]] == ["docs", "tagged"]


def test_a_bucket_is_not_made_from_an_upload(signer: Signer, s3: Any) -> None:
    for name in ["x-amz-bucket-namespace", "x-amz-meta-a", "x-amz-tagging", "x-amz-copy-source"]:
        check_refused(signer.send("PUT", "/another", headers={name: "account-regional"}), name)
        for header in ("if-none-match", "cache-control", "content-disposition", "expires"):
            check_refused(signer.send("PUT", "/another", headers={header: "max-age=60"}), header)
    check_unchanged(s3)


def test_an_expected_owner_is_checked_where_no_bucket_is_named(signer: Signer, s3: Any) -> None:
    headers = {"x-amz-expected-bucket-owner": "999999999999"}
    assert signer.send("PUT", "/another", headers=headers).code == "AccessDenied"
    assert signer.send("GET", "/", headers=headers).code == "AccessDenied"
    check_unchanged(s3)


def test_buckets_of_another_region_are_none(s3: Any, bucket: str) -> None:
    assert s3.list_buckets(BucketRegion="eu-west-9")["Buckets"] == []
    assert [row["Name"] for row in s3.list_buckets(BucketRegion="us-east-1")["Buckets"]] == [bucket]


def test_a_write_takes_one_value_of_a_header(signer: Signer, s3: Any) -> None:
    for first, second in [
        (("x-amz-storage-class", "STANDARD"), "GLACIER"),
        (("x-amz-acl", "private"), "public-read"),
        (("x-amz-expected-bucket-owner", ""), "1"),
        (("x-amz-copy-source", "docs/k"), "docs/other"),
        (("if-none-match", ""), "*"),
    ]:
        name, value = first
        # AWS joins the values for the signature.
        signed = signer.sign("PUT", "/docs/k", {name: f"{value},{second}"}, payload=UNSIGNED)
        answer = send(
            signer.url, "PUT", "/docs/k", signed | {name: value, name.title(): second}, b"x"
        )
        assert (answer.status, answer.code) == (400, "InvalidArgument")
        assert name in answer.text("Message")
    check_unchanged(s3)


def test_a_parameter_has_one_value(signer: Signer, s3: Any) -> None:
    for method, target, name in [
        ("DELETE", "/docs/k?versionId=null&versionId=zzz", "versionId"),
        ("DELETE", "/docs/k?uploadId=a&uploadId=b", "uploadId"),
        ("PUT", "/docs/k?partNumber=1&partNumber=2&uploadId=a", "partNumber"),
        ("GET", "/docs?list-type=2&prefix=&prefix=k", "prefix"),
        ("GET", "/docs?list-type=2&list-type=3", "list-type"),
    ]:
        answer = signer.send(method, target)
        assert (answer.status, answer.code) == (400, "InvalidArgument")
        assert name in answer.text("Message")
    check_unchanged(s3)


def test_equal_headers_and_those_of_metadata_may_be_sent_twice(signer: Signer, s3: Any) -> None:
    headers = {"x-amz-meta-a": "b,c", "x-amz-acl": "private,private"}
    signed = signer.sign("PUT", "/docs/m", headers, payload=UNSIGNED)
    lower = {"x-amz-meta-a": "b", "x-amz-acl": "private"}
    sent = signed | lower | {"X-Amz-Meta-A": "c", "X-Amz-Acl": "private"}
    assert send(signer.url, "PUT", "/docs/m", sent, b"x").status == 200
    assert s3.head_object(Bucket="docs", Key="m")["Metadata"] == {"a": "b,c"}


def test_an_empty_version_is_not_the_current_one(signer: Signer, s3: Any) -> None:
    for method in ["GET", "HEAD", "DELETE"]:
        for query in ["versionId=", "versionId"]:
            assert signer.send(method, f"/docs/k?{query}").status == 400
            check_unchanged(s3)
