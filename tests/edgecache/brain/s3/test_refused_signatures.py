"""A request with a wrong signature gets AWS's error code and has no effect."""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest

from tests.edgecache.brain.s3.raw import UNSIGNED, Answer, Signer, send
from tests.edgecache.cluster import Cluster, Keys, until


@pytest.fixture
def signer(cluster: Cluster, keys: Keys, bucket: str) -> Signer:
    """Return a signer of a tenant that has a bucket with one object."""
    made = Signer(keys, cluster.url)
    assert made.send("PUT", f"/{bucket}/a", b"bytes").status == 200
    return made


def get(signer: Signer, headers: Mapping[str, str]) -> Answer:
    """Send a GET with these headers."""
    return send(signer.url, "GET", "/docs/a", headers)


def test_a_correct_signature_is_accepted(signer: Signer) -> None:
    answer = get(signer, signer.sign("GET", "/docs/a"))
    assert (answer.status, answer.body) == (200, b"bytes")


def test_an_altered_signature_is_refused(signer: Signer) -> None:
    headers = signer.sign("GET", "/docs/a")
    last = "0" if headers["authorization"][-1] != "0" else "1"
    headers["authorization"] = headers["authorization"][:-1] + last
    answer = get(signer, headers)
    assert (answer.status, answer.code) == (403, "SignatureDoesNotMatch")
    assert answer.text("RequestId") == answer.headers["x-amz-request-id"]
    assert b"bytes" not in answer.body


def test_a_signature_for_another_path_method_query_or_header_is_refused(signer: Signer) -> None:
    for method, target, headers in (
        ("GET", "/docs/b", {}),
        ("GET", "/docs/a?partNumber=1", {}),
        ("HEAD", "/docs/a", {}),
        ("DELETE", "/docs/a", {}),
        ("GET", "/docs/a", {"x-amz-checksum-mode": "ENABLED"}),
    ):
        signed = signer.sign("GET", "/docs/a", {"x-amz-checksum-mode": "DISABLED"})
        assert send(signer.url, method, target, signed | headers).status == 403


def test_a_wrong_secret_is_refused(signer: Signer) -> None:
    wrong = Keys(1, 1, signer.keys.access_key, "x" * 40)
    answer = Signer(wrong, signer.url).send("GET", "/docs/a")
    assert (answer.status, answer.code) == (403, "SignatureDoesNotMatch")


def test_an_unknown_access_key_is_refused(signer: Signer) -> None:
    for name in ("ZKNOSUCHKEY", "x" * 200, "%00"):
        unknown = Keys(1, 1, name, signer.keys.secret_key)
        answer = Signer(unknown, signer.url).send("GET", "/docs/a")
        assert (answer.status, answer.code) == (403, "InvalidAccessKeyId")


def test_a_deleted_access_key_is_refused_immediately(cluster: Cluster, signer: Signer) -> None:
    other = cluster.tenant(like=signer.keys)
    assert Signer(other, signer.url).send("GET", "/docs/a").status == 200
    cluster.call("DELETE", f"/v1/access-keys/{other.access_key}?{other.scope}")
    answer = Signer(other, signer.url).send("GET", "/docs/a")
    assert (answer.status, answer.code) == (403, "InvalidAccessKeyId")


@pytest.mark.parametrize("minutes", [-16, 16, -100000])
def test_a_skewed_clock_is_refused(signer: Signer, minutes: int) -> None:
    now = datetime.now(UTC) + timedelta(minutes=minutes)
    answer = signer.send("GET", "/docs/a", now=now)
    assert (answer.status, answer.code) == (403, "RequestTimeTooSkewed")


@pytest.mark.parametrize("minutes", [-14, 14])
def test_a_little_skew_is_accepted(signer: Signer, minutes: int) -> None:
    now = datetime.now(UTC) + timedelta(minutes=minutes)
    assert signer.send("GET", "/docs/a", now=now).status == 200


def test_an_anonymous_request_for_a_private_object_is_refused(signer: Signer) -> None:
    for method, target in (("GET", "/docs/a"), ("GET", "/docs"), ("GET", "/"), ("PUT", "/docs/b")):
        answer = send(signer.url, method, target)
        assert (answer.status, answer.code) == (403, "AccessDenied")


MALFORMED = [
    ({"authorization": "AWS4-HMAC-SHA256 nonsense"}, 400, "AuthorizationHeaderMalformed"),
    ({"authorization": "AWS AKID:c2ln"}, 400, "InvalidRequest"),
    ({"authorization": "Bearer token"}, 400, "InvalidRequest"),
    ({"x-amz-date": "yesterday"}, 403, "AccessDenied"),
    ({"x-amz-date": "20130524T000000Z"}, 400, "AuthorizationHeaderMalformed"),
    ({"x-amz-content-sha256": ""}, 400, "InvalidRequest"),
    ({"x-amz-content-sha256": "abc"}, 400, "InvalidArgument"),
    ({"x-amz-unsigned": "1"}, 403, "AccessDenied"),
    ({"x-amz-security-token": "x"}, 403, "AccessDenied"),
]


def test_a_malformed_signature_is_refused(signer: Signer) -> None:
    for headers, status, code in MALFORMED:
        answer = get(signer, signer.sign("GET", "/docs/a") | headers)
        assert (answer.status, answer.code) == (status, code)


def test_a_session_token_is_refused(signer: Signer) -> None:
    answer = signer.send("GET", "/docs/a", headers={"x-amz-security-token": "x"})
    assert (answer.status, answer.code) == (400, "InvalidToken")
    assert "no session token" in answer.text("Message")
    assert "AWS_SESSION_TOKEN" in answer.text("Message")


def test_another_service_s_signature_is_refused(signer: Signer) -> None:
    answer = Signer(signer.keys, signer.url, service="ec2").send("GET", "/docs/a")
    assert (answer.status, answer.code) == (400, "AuthorizationHeaderMalformed")


def test_no_long_text_of_a_signature_is_remembered(signer: Signer) -> None:
    # A process keeps thousands of signing keys, each with its region.
    long = Signer(signer.keys, signer.url, region="r" * 65)
    assert long.send("GET", "/docs/a").code == "AuthorizationHeaderMalformed"
    target = long.presign("GET", "/docs/a")
    assert send(signer.url, "GET", target).code == "AuthorizationQueryParametersError"
    assert Signer(signer.keys, signer.url, region="r" * 64).send("GET", "/docs/a").status == 200


def test_a_body_other_than_the_signed_one_is_refused(signer: Signer) -> None:
    answer = signer.send("PUT", "/docs/b", b"other", payload=hashlib.sha256(b"signed").hexdigest())
    assert (answer.status, answer.code) == (400, "XAmzContentSHA256Mismatch")
    assert signer.send("GET", "/docs/b").code == "NoSuchKey"


def test_an_unsigned_payload_is_accepted(signer: Signer) -> None:
    assert signer.send("PUT", "/docs/b", b"free", payload=UNSIGNED).status == 200
    assert signer.send("GET", "/docs/b").body == b"free"


def test_a_presigned_request_works_until_it_expires(signer: Signer) -> None:
    answer = send(signer.url, "GET", signer.presign("GET", "/docs/a"))
    assert (answer.status, answer.body) == (200, b"bytes")
    old = datetime.now(UTC) - timedelta(seconds=302)
    expired = send(signer.url, "GET", signer.presign("GET", "/docs/a", expires=300, now=old))
    assert (expired.status, expired.code) == (403, "AccessDenied")
    assert expired.text("Message") == "Request has expired"


def test_a_presigned_put_stores_what_is_sent(signer: Signer) -> None:
    target = signer.presign("PUT", "/docs/up")
    assert send(signer.url, "PUT", target, body=b"from a browser").status == 200
    assert signer.send("GET", "/docs/up").body == b"from a browser"
    # It allows PUT, not GET.
    assert send(signer.url, "GET", target).code == "SignatureDoesNotMatch"


def test_a_presigned_request_from_the_future_is_refused(signer: Signer) -> None:
    later = datetime.now(UTC) + timedelta(minutes=16)
    answer = send(signer.url, "GET", signer.presign("GET", "/docs/a", now=later))
    assert (answer.status, answer.code) == (403, "AccessDenied")


ALTERED = [
    ("X-Amz-Expires=300", "X-Amz-Expires=301", 403, "SignatureDoesNotMatch"),
    ("X-Amz-Expires=300", "X-Amz-Expires=604801", 400, "AuthorizationQueryParametersError"),
    ("X-Amz-Expires=300", "X-Amz-Expires=-1", 400, "AuthorizationQueryParametersError"),
    ("X-Amz-Expires=300", "X-Amz-Expires=soon", 400, "AuthorizationQueryParametersError"),
    ("X-Amz-Expires=300&", "", 400, "AuthorizationQueryParametersError"),
    ("SignedHeaders=host", "SignedHeaders=", 400, "AuthorizationQueryParametersError"),
    ("SignedHeaders=host", "SignedHeaders=range", 403, "AccessDenied"),
    ("AWS4-HMAC-SHA256", "AWS4-HMAC-SHA1", 400, "AuthorizationQueryParametersError"),
    ("/docs/a?", "/docs/b?", 403, "SignatureDoesNotMatch"),
    ("&X-Amz-Signature", "&versionId=null&X-Amz-Signature", 403, "SignatureDoesNotMatch"),
]


def test_an_altered_presigned_request_is_refused(signer: Signer) -> None:
    for old, new, status, code in ALTERED:
        target = signer.presign("GET", "/docs/a")
        assert old in target
        answer = send(signer.url, "GET", target.replace(old, new))
        assert (answer.status, answer.code) == (status, code)


def test_two_signatures_in_one_request_are_refused(signer: Signer) -> None:
    target = signer.presign("GET", "/docs/a")
    answer = send(signer.url, "GET", target, {"authorization": "AWS4-HMAC-SHA256 x"})
    assert (answer.status, answer.code) == (400, "InvalidArgument")


def test_a_key_of_read_access_may_not_write(cluster: Cluster, signer: Signer) -> None:
    reader = Signer(cluster.tenant("read", like=signer.keys), cluster.url)
    assert reader.send("GET", "/docs/a").status == 200
    assert reader.send("GET", "/docs").status == 200
    for method, target in (
        ("PUT", "/docs/b"),
        ("PUT", "/more"),
        ("DELETE", "/docs/a"),
        ("DELETE", "/docs"),
        ("POST", "/docs?delete="),
        ("POST", "/docs/b?uploads="),
        ("PUT", "/docs/b?partNumber=1&uploadId=x"),
        ("POST", "/docs/b?uploadId=x"),
        ("DELETE", "/docs/b?uploadId=x"),
        ("GET", "/docs/b?uploadId=x"),
        ("GET", "/docs?uploads="),
    ):
        answer = reader.send(method, target)
        assert (answer.status, answer.code) == (403, "AccessDenied"), (method, target)
    copy = reader.send("PUT", "/docs/b", headers={"x-amz-copy-source": "/docs/a"})
    assert copy.code == "AccessDenied"
    assert signer.send("GET", "/docs/a").body == b"bytes"


def test_the_signature_is_checked_before_the_body_is_read(signer: Signer, cluster: Cluster) -> None:
    # The body is announced and never sent, and the request is refused nevertheless.
    headers = signer.sign("PUT", "/docs/b", payload=UNSIGNED)
    headers["authorization"] = headers["authorization"][:-4] + "0000"
    headers["content-length"] = str(2**40)
    answer = send(cluster.url, "PUT", "/docs/b", headers)
    assert (answer.status, answer.code) == (403, "SignatureDoesNotMatch")


def test_the_log_contains_no_secret(cluster: Cluster, signer: Signer, s3: Any) -> None:
    target = signer.presign("GET", "/docs/a")
    send(signer.url, "GET", target)
    s3.get_object(Bucket="docs", Key="a")
    # Lines are written together, a moment later.
    until(lambda: '"operation":"GetObject"' in cluster.log)
    written = cluster.log
    assert signer.keys.secret_key not in written
    assert target.rpartition("=")[2] not in written
    assert cluster.secret not in written


def test_a_presigned_url_of_version_2_works_until_it_expires(
    cluster: Cluster, signer: Signer
) -> None:
    def presigned(query: str = "", *, seconds: int = 300) -> str:
        expires = int(datetime.now(UTC).timestamp()) + seconds
        text = f"GET\n\n\n{expires}\n/docs/a{query}"
        secret = signer.keys.secret_key.encode()
        digest = base64.b64encode(hmac.digest(secret, text.encode(), "sha1")).decode()
        query = f"{query}&" if query else "?"
        return (
            f"/docs/a{query}AWSAccessKeyId={signer.keys.access_key}&Expires={expires}"
            f"&Signature={quote(digest, safe='')}"
        )

    assert send(cluster.url, "GET", presigned()).body == b"bytes"
    signed = presigned("?versionId=null")
    assert send(cluster.url, "GET", signed).body == b"bytes"
    for target, code in (
        (presigned().replace("/docs/a", "/docs/b"), "SignatureDoesNotMatch"),
        (signed.replace("null", "other"), "SignatureDoesNotMatch"),
        (presigned() + "&versionId=null", "SignatureDoesNotMatch"),
        (presigned() + "&attributes=", "AccessDenied"),
        (presigned().replace("Signature=", "Signature=x"), "SignatureDoesNotMatch"),
        (presigned(seconds=-2), "AccessDenied"),
        (presigned(seconds=8 * 86400), "AccessDenied"),
        (presigned().replace("Expires=", "Expires=x"), "AccessDenied"),
    ):
        answer = send(cluster.url, "GET", target)
        assert (answer.status, answer.code) == (403, code), target
    for method in ("PUT", "DELETE", "HEAD"):
        assert send(cluster.url, method, presigned()).status == 403
