"""Additional parameters of requests: honoured or refused, without effect on later answers."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.edgecache.brain.s3.multipart.support import PART, Upload
from tests.edgecache.brain.s3.raw import Signer, send
from tests.edgecache.cluster import Cluster, Keys


@pytest.fixture
def signer(cluster: Cluster, keys: Keys, bucket: str) -> Signer:
    """Return a signer of the tenant, which has a bucket with an object."""
    signer = Signer(keys, cluster.url)
    assert signer.send("PUT", "/docs/k", b"bytes").status == 200
    return signer


@pytest.mark.parametrize("text", ["a\u2028b", "a\u0085b", "日本" * 200, "naïve"])
def test_metadata_of_any_text_comes_back(signer: Signer, text: str) -> None:
    target = signer.presign("PUT", "/docs/k", query={"x-amz-meta-a": text})
    assert send(signer.url, "PUT", target, {}, b"bytes").status == 200
    for method in ("GET", "HEAD"):
        answer = signer.send(method, "/docs/k")
        assert (answer.status, answer.headers["x-amz-meta-a"][:10]) == (200, "=?UTF-8?B?")


def test_a_nul_in_a_bucket_s_name_is_a_bad_request(signer: Signer) -> None:
    preflight = {"origin": "http://x", "access-control-request-method": "GET"}
    for method, headers in (("GET", {}), ("HEAD", {}), ("OPTIONS", preflight)):
        assert send(signer.url, method, "/do%00cs/k", headers).status == 400
    assert signer.send("GET", "/do%00cs/k").code == "InvalidBucketName"


def test_a_refused_text_is_escaped_in_the_error(signer: Signer) -> None:
    answer = signer.send("PUT", "/docs/k", b"x", {"x-amz-tagging": "a%00=b"})
    assert (answer.status, b"\0" in answer.body) == (400, False)


def test_an_override_that_no_header_can_hold_is_refused(signer: Signer) -> None:
    for text, status in (("%E6%97%A5", 400), ("caf%C3%A9", 200)):
        target = f"/docs/k?response-content-disposition={text}"
        assert signer.send("GET", target).status == status


def test_an_empty_last_part_has_no_range(signer: Signer, s3: Any) -> None:
    upload = Upload(s3, "parts")
    upload.add(1, b"a" * PART)
    upload.add(2, b"")
    upload.complete()
    for method in ("GET", "HEAD"):
        answer = signer.send(method, "/docs/parts?partNumber=2")
        assert (answer.status, answer.headers["content-length"]) == (200, "0")
        assert "content-range" not in answer.headers
        assert answer.headers["x-amz-mp-parts-count"] == "2"


def test_copying_parts_asks_for_no_encryption(s3: Any, signer: Signer) -> None:
    upload = Upload(s3, "copy")
    with pytest.raises(ClientError, match="NotImplemented"):
        s3.upload_part_copy(
            **upload.options,
            PartNumber=1,
            CopySource="docs/k",
            CopySourceSSECustomerAlgorithm="AES256",
            CopySourceSSECustomerKey="k" * 32,
        )
