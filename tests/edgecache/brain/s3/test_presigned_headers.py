"""Presigned URLs that name headers: in their query, or for the client to send."""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.config import Config

from tests.edgecache.brain.s3.raw import Answer, Signer, send
from tests.edgecache.cluster import Cluster, Keys

Presign = Callable[..., str]


@pytest.fixture(params=[None, "s3v4"], ids=["boto3's default", "version 4"])
def client(request: pytest.FixtureRequest, cluster: Cluster, keys: Keys) -> Any:
    """Return a client, with each signature version of boto3."""
    return boto3.client(
        "s3",
        endpoint_url=cluster.url,
        aws_access_key_id=keys.access_key,
        aws_secret_access_key=keys.secret_key,
        region_name="us-east-1",
        config=Config(signature_version=request.param),
    )


@pytest.fixture
def presign(client: Any, bucket: str) -> Presign:
    """Return a function that presigns a PutObject."""

    def url(**params: Any) -> str:
        made: str = client.generate_presigned_url("put_object", {"Bucket": bucket, **params})
        return made

    return url


def sent(url: str, headers: Mapping[str, str] | None = None) -> Answer:
    """PUT to a presigned URL."""
    parts = urlsplit(url)
    target = f"{parts.path}?{parts.query}"
    return send(f"http://{parts.netloc}", "PUT", target, headers, b"by link")


def test_a_presigned_put_with_a_type_and_metadata_stores_them(
    presign: Presign, s3: Any, bucket: str
) -> None:
    url = presign(Key="k", ContentType="text/x-own", Metadata={"colour": "blue"})
    headers = {"content-type": "text/x-own", "x-amz-meta-colour": "blue"}
    assert sent(url, headers).status == 200
    head = s3.head_object(Bucket=bucket, Key="k")
    assert (head["ContentType"], head["Metadata"]) == ("text/x-own", {"colour": "blue"})


def test_what_a_presigned_put_names_cannot_be_changed(
    presign: Presign, s3: Any, bucket: str
) -> None:
    url = presign(Key="k", ContentType="text/plain", Metadata={"colour": "blue"})
    right = {"content-type": "text/plain", "x-amz-meta-colour": "blue"}
    for headers in (
        right | {"content-type": "text/html"},
        right | {"x-amz-meta-colour": "red"},
        right | {"x-amz-meta-other": "more"},
    ):
        assert sent(url, headers).status == 403, headers
    for old, new in (("blue", "red"), ("text%2Fplain", "text%2Fhtml"), ("plain", "html")):
        if old in url:
            changed = url.replace(old, new)
            left = {
                name: value for name, value in right.items() if value not in {old, "text/plain"}
            }
            assert sent(changed, left).status == 403, changed
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)


def test_headers_in_the_query_of_version_2_need_not_be_sent_again(
    cluster: Cluster, keys: Keys, s3: Any, bucket: str
) -> None:
    client = boto3.client(
        "s3",
        endpoint_url=cluster.url,
        aws_access_key_id=keys.access_key,
        aws_secret_access_key=keys.secret_key,
        region_name="us-east-1",
    )
    params = {"Bucket": bucket, "Key": "k", "ContentType": "text/x-own", "Metadata": {"a": "b"}}
    url = client.generate_presigned_url("put_object", params)
    assert "content-type=" in url
    assert sent(url).status == 200
    head = s3.head_object(Bucket=bucket, Key="k")
    assert (head["ContentType"], head["Metadata"]) == ("text/x-own", {"a": "b"})


def test_headers_in_the_query_of_version_4_are_those_of_the_request(
    cluster: Cluster, keys: Keys, s3: Any, bucket: str
) -> None:
    # As AWS's SDKs for JavaScript and Go presign.
    signer = Signer(keys, cluster.url)
    target = signer.presign("PUT", "/docs/k", query={"x-amz-meta-colour": "blue"})
    assert send(cluster.url, "PUT", target, body=b"by link").status == 200
    assert s3.head_object(Bucket=bucket, Key="k")["Metadata"] == {"colour": "blue"}
    # The checksum of an empty body, which the SDK for JavaScript considers the upload's.
    empty = {"x-amz-checksum-crc32": "AAAAAA==", "x-amz-sdk-checksum-algorithm": "CRC32"}
    target = signer.presign("PUT", "/docs/k", query=empty)
    assert send(cluster.url, "PUT", target, body=b"other").status == 200
    copies = signer.presign("PUT", "/docs/copy", query={"x-amz-copy-source": "/docs/k"})
    assert send(cluster.url, "PUT", copies).text("ETag")
    assert send(cluster.url, "PUT", target + "&x-amz-meta-more=x", body=b"x").status == 403


def test_an_anonymous_request_has_no_headers_in_its_query(
    cluster: Cluster, s3: Any, bucket: str
) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    answer = send(cluster.url, "PUT", "/docs/copy?x-amz-copy-source=%2Fdocs%2Fk")
    assert (answer.status, "x-amz-copy-source" in answer.text("Message")) == (501, True)
    assert [row["Key"] for row in s3.list_objects_v2(Bucket=bucket)["Contents"]] == ["k"]


def test_a_file_name_beyond_ascii_can_be_signed(
    client: Any, cluster: Cluster, s3: Any, bucket: str
) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    wanted = 'attachment; filename="Übersicht.txt"'
    params = {"Bucket": bucket, "Key": "k", "ResponseContentDisposition": wanted}
    parts = urlsplit(client.generate_presigned_url("get_object", params))
    answer = send(cluster.url, "GET", f"{parts.path}?{parts.query}")
    found = answer.headers["content-disposition"].encode("latin-1").decode()
    assert (answer.status, found) == (200, wanted)
    other = parts.query.replace("%C3%9C", "%C3%9D")
    assert send(cluster.url, "GET", f"{parts.path}?{other}").code == "SignatureDoesNotMatch"
