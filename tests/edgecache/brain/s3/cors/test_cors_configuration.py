"""A bucket's CORS configuration: stored as it was sent, within AWS's limits."""

from typing import Any

import pytest

from tests.edgecache.brain.s3.raw import Signer
from tests.edgecache.brain.s3.test_object_tags import refused
from tests.edgecache.cluster import Cluster, Keys

RULES = [
    {
        "ID": "uploads",
        "AllowedHeaders": ["x-amz-*", "content-type"],
        "AllowedMethods": ["PUT", "POST", "DELETE"],
        "AllowedOrigins": ["https://app.example.com", "https://*.example.org"],
        "ExposeHeaders": ["ETag", "x-amz-request-id"],
        "MaxAgeSeconds": 3000,
    },
    {"AllowedMethods": ["GET", "HEAD"], "AllowedOrigins": ["*"]},
]


@pytest.fixture
def signer(cluster: Cluster, keys: Keys, bucket: str) -> Signer:
    """Return a signer of the tenant."""
    return Signer(keys, cluster.url)


def rule(**changes: str) -> str:
    """Return a rule's XML. changes: elements that replace the usual ones or are added."""
    elements = {"AllowedOrigin": "https://a", "AllowedMethod": "GET", **changes}
    inner = "".join(f"<{name}>{text}</{name}>" for name, text in elements.items())
    return f"<CORSRule>{inner}</CORSRule>"


def test_a_configuration_is_stored_replaced_and_removed(s3: Any, bucket: str) -> None:
    assert refused(lambda: s3.get_bucket_cors(Bucket=bucket)) == "NoSuchCORSConfiguration"
    s3.put_bucket_cors(Bucket=bucket, CORSConfiguration={"CORSRules": RULES})
    assert s3.get_bucket_cors(Bucket=bucket)["CORSRules"] == RULES
    s3.put_bucket_cors(Bucket=bucket, CORSConfiguration={"CORSRules": RULES[1:]})
    assert s3.get_bucket_cors(Bucket=bucket)["CORSRules"] == RULES[1:]
    s3.delete_bucket_cors(Bucket=bucket)
    assert refused(lambda: s3.get_bucket_cors(Bucket=bucket)) == "NoSuchCORSConfiguration"


def test_a_configuration_beyond_the_limits_is_refused(signer: Signer) -> None:
    for rules, code in [
        ("", "MalformedXML"),
        (rule() * 101, "MalformedXML"),
        ("<Other/>", "MalformedXML"),
        ("<CORSRule><AllowedMethod>GET</AllowedMethod></CORSRule>", "MalformedXML"),
        ("<CORSRule><AllowedOrigin>*</AllowedOrigin></CORSRule>", "MalformedXML"),
        (rule(MaxAgeSeconds="-1"), "MalformedXML"),
        (rule(MaxAgeSeconds="soon"), "MalformedXML"),
        (rule(Other="x"), "MalformedXML"),
        (rule(AllowedMethod="PATCH"), "InvalidRequest"),
        (rule(AllowedMethod="get"), "InvalidRequest"),
        (rule(AllowedOrigin="https://*.*"), "InvalidRequest"),
        (rule(AllowedOrigin="https://a b"), "InvalidRequest"),
        (rule(AllowedHeader="x-*-*"), "InvalidRequest"),
        (rule(AllowedHeader="x: y"), "InvalidRequest"),
        (rule(ExposeHeader="*"), "InvalidRequest"),
        (rule(ExposeHeader="a&#10;b: c"), "InvalidRequest"),
        (rule(ID="x" * 256), "InvalidArgument"),
        (rule(ID="x" * 2**16), "MaxMessageLengthExceeded"),
    ]:
        body = f"<CORSConfiguration>{rules}</CORSConfiguration>".encode()
        answer = signer.send("PUT", "/docs?cors=", body)
        assert (answer.status, answer.code) == (400, code)
        assert signer.send("GET", "/docs?cors=").code == "NoSuchCORSConfiguration"


def test_a_hundred_rules_are_accepted(signer: Signer) -> None:
    body = f"<CORSConfiguration>{rule() * 100}</CORSConfiguration>".encode()
    assert signer.send("PUT", "/docs?cors=", body).status == 200


def test_the_configuration_is_the_tenant_s(cluster: Cluster, keys: Keys, s3: Any) -> None:
    s3.create_bucket(Bucket="docs")
    s3.put_bucket_cors(Bucket="docs", CORSConfiguration={"CORSRules": RULES})
    charlie = Signer(cluster.tenant(), cluster.url)
    reader = Signer(cluster.tenant("read", like=keys), cluster.url)
    body = f"<CORSConfiguration>{rule()}</CORSConfiguration>".encode()
    for method in ("GET", "PUT", "DELETE"):
        assert charlie.send(method, "/docs?cors=", body).code == "NoSuchBucket"
    for method in ("PUT", "DELETE"):
        assert reader.send(method, "/docs?cors=", body).code == "AccessDenied"
    assert s3.get_bucket_cors(Bucket="docs")["CORSRules"] == RULES
