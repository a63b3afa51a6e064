"""A holder of a presigned URL cannot change its meaning: the signature covers it."""

import base64
import hmac
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pytest

from tests.edgecache.brain.s3.raw import Answer, Signer, send
from tests.edgecache.cluster import Cluster, Keys


@pytest.fixture
def signer(cluster: Cluster, keys: Keys, bucket: str) -> Signer:
    """Return a signer of the tenant, which has a bucket with an object."""
    signer = Signer(keys, cluster.url)
    assert signer.send("PUT", "/docs/source", b"source").status == 200
    return signer


def put(signer: Signer, target: str, headers: dict[str, str] | None = None) -> Answer:
    """PUT another body."""
    return send(signer.url, "PUT", target, headers, b"other")


def version_2(signer: Signer, path: str, query: str = "", *headers: str) -> str:
    """Return the parameters of a signature of version 2 for a PUT."""
    expires = int(datetime.now(UTC).timestamp()) + 300
    text = "\n".join(["PUT", "", "", str(expires), *headers, path + query])
    digest = hmac.digest(signer.keys.secret_key.encode(), text.encode(), "sha1")
    signature = quote(base64.b64encode(digest).decode(), safe="")
    return f"AWSAccessKeyId={signer.keys.access_key}&Expires={expires}&Signature={signature}"


@pytest.mark.parametrize("empty", ["", " "])
def test_an_empty_authorization_does_not_take_headers_out_of_a_url(
    signer: Signer, s3: Any, empty: str
) -> None:
    copy = signer.presign("PUT", "/docs/k", query={"x-amz-copy-source": "/docs/source"})
    assert put(signer, copy, {"authorization": empty}).status == 200
    assert s3.get_object(Bucket="docs", Key="k")["Body"].read() == b"source"
    owner = {"x-amz-expected-bucket-owner": "000000000001"}
    target = signer.presign("PUT", "/docs/k", query=owner)
    assert put(signer, target, {"authorization": empty}).code == "AccessDenied"


def test_parameters_of_version_2_cannot_be_joined(signer: Signer, s3: Any) -> None:
    upload = s3.create_multipart_upload(Bucket="docs", Key="source")["UploadId"]
    query = f"?partNumber=1&uploadId={upload}"
    signed = version_2(signer, "/docs/source", query)
    assert send(signer.url, "PUT", f"/docs/source{query}&{signed}", {}, b"part").status == 200

    joined = f"?partNumber={quote(f'1&uploadId={upload}', safe='')}"
    assert put(signer, f"/docs/source{joined}&{signed}").code == "AccessDenied"
    assert s3.get_object(Bucket="docs", Key="source")["Body"].read() == b"source"


def test_headers_of_version_2_cannot_be_joined(signer: Signer) -> None:
    headers = ("x-amz-copy-source:/docs/source", "x-amz-meta-a:1")
    signed = version_2(signer, "/docs/k", "", *headers)
    name = quote("x-amz-copy-source:/docs/source\nx-amz-meta-a", safe="")
    assert put(signer, f"/docs/k?{name}=1&{signed}").code == "InvalidArgument"


@pytest.mark.parametrize(
    "name", ["x-amz-meta-a\r\nset-cookie", "x-amz-meta-a: b", "x-amz-meta-\xfc"]
)
def test_what_is_no_header_s_name_is_refused(signer: Signer, name: str) -> None:
    target = signer.presign("PUT", "/docs/k", query={quote(name, safe=""): "1"})
    assert put(signer, target).code == "InvalidArgument"


def test_what_is_no_number_of_seconds_is_refused(signer: Signer) -> None:
    for seconds in ["--5", "5-", "", "1e3", "9" * 30]:
        target = signer.presign("GET", "/docs/source")
        answer = send(signer.url, "GET", target.replace("Expires=300", f"Expires={seconds}"))
        assert (answer.status, answer.code) == (400, "AuthorizationQueryParametersError")
