"""The website of a bucket by S3's operations."""

from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.edgecache.brain.s3.raw import Answer, Signer
from tests.edgecache.brain.s3.test_object_tags import refused
from tests.edgecache.cluster import Cluster, Keys

INDEX = "<IndexDocument><Suffix>index.html</Suffix></IndexDocument>"
ERROR = "<ErrorDocument><Key>errors/404.html</Key></ErrorDocument>"
BOTH = {
    "IndexDocument": {"Suffix": "index.html"},
    "ErrorDocument": {"Key": "errors/404.html"},
}


@pytest.fixture
def signer(cluster: Cluster, keys: Keys) -> Signer:
    """Return a signer of the tenant."""
    return Signer(keys, cluster.url)


def put(signer: Signer, inner: str) -> Answer:
    """Send a document."""
    body = f"<WebsiteConfiguration>{inner}</WebsiteConfiguration>".encode()
    return signer.send("PUT", "/docs?website=", body)


def test_a_website_is_the_tenant_s(cluster: Cluster, keys: Keys, s3: Any, bucket: str) -> None:
    s3.put_bucket_website(Bucket=bucket, WebsiteConfiguration=BOTH)
    charlie = Signer(cluster.tenant(), cluster.url)
    reader = Signer(cluster.tenant("read", like=keys), cluster.url)
    body = f"<WebsiteConfiguration>{INDEX}</WebsiteConfiguration>".encode()
    for method in ("GET", "PUT", "DELETE"):
        assert charlie.send(method, "/docs?website=", body).code == "NoSuchBucket"
    for method in ("PUT", "DELETE"):
        assert reader.send(method, "/docs?website=", body).code == "AccessDenied"
    found = s3.get_bucket_website(Bucket=bucket)
    assert {name: found[name] for name in BOTH} == BOTH


@pytest.mark.parametrize(
    ("inner", "code", "names"),
    [
        (f"{INDEX}<RoutingRules/>", "NotImplemented", "RoutingRules"),
        (
            "<RedirectAllRequestsTo><HostName>evil.example</HostName></RedirectAllRequestsTo>",
            "NotImplemented",
            "RedirectAllRequestsTo",
        ),
        (f"{INDEX}<Fallback/>", "MalformedXML", "Fallback"),
        (f"{INDEX}{INDEX}", "MalformedXML", "IndexDocument"),
        (f"{INDEX}{ERROR}{ERROR}", "MalformedXML", "ErrorDocument"),
        (
            "<IndexDocument><Suffix>a</Suffix><Suffix>b</Suffix></IndexDocument>",
            "MalformedXML",
            "Suffix",
        ),
        (f"{INDEX}<ErrorDocument><Path>a</Path></ErrorDocument>", "MalformedXML", "Path"),
        ("", "InvalidArgument", "Suffix"),
        (ERROR, "InvalidArgument", "Suffix"),
        ("<IndexDocument/>", "InvalidArgument", "Suffix"),
        ("<IndexDocument><Suffix>a/b</Suffix></IndexDocument>", "InvalidArgument", "slash"),
        (
            f"<IndexDocument><Suffix>{256 * 'a'}</Suffix></IndexDocument>",
            "InvalidArgument",
            "Suffix",
        ),
        (f"{INDEX}<ErrorDocument><Key/></ErrorDocument>", "InvalidArgument", "Key"),
        (f"{INDEX}<ErrorDocument><Key>/a</Key></ErrorDocument>", "InvalidArgument", "slash"),
    ],
)
def test_what_a_website_cannot_be_is_refused_by_its_name(
    signer: Signer, s3: Any, bucket: str, inner: str, code: str, names: str
) -> None:
    answer = put(signer, inner)
    assert (answer.code, names in answer.text("Message")) == (code, True)
    assert refused(partial(s3.get_bucket_website, Bucket=bucket)) == "NoSuchWebsiteConfiguration"


def test_a_website_is_the_options_of_its_bucket(
    cluster: Cluster, keys: Keys, s3: Any, bucket: str
) -> None:
    with pytest.raises(ClientError) as absent:
        s3.get_bucket_website(Bucket=bucket)
    assert absent.value.response["Error"]["Code"] == "NoSuchWebsiteConfiguration"
    assert absent.value.response["ResponseMetadata"]["HTTPStatusCode"] == 404
    assert refused(partial(s3.get_bucket_website, Bucket="absent")) == "NoSuchBucket"

    def options(**changes: Any) -> tuple[str, str, bool]:
        row = cluster.call("GET", f"/v1/buckets/{bucket}?{keys.scope}")
        if changes:
            row = cluster.call("PATCH", f"/v1/buckets/{row['id']}?{keys.scope}", changes)
        return row["website_index"], row["website_error"], row["website_fallback"]

    s3.put_bucket_website(Bucket=bucket, WebsiteConfiguration=BOTH)
    assert options() == ("index.html", "errors/404.html", False)
    options(website_index="home.html", website_error="", website_fallback=True)
    found = s3.get_bucket_website(Bucket=bucket)
    assert found["IndexDocument"] == {"Suffix": "home.html"}
    assert "ErrorDocument" not in found
    # A document replaces all, what it cannot say too.
    only_index = {"IndexDocument": BOTH["IndexDocument"]}
    s3.put_bucket_website(Bucket=bucket, WebsiteConfiguration=only_index)
    assert options() == ("index.html", "", False)
    for _ in range(2):
        answer = s3.delete_bucket_website(Bucket=bucket)
        assert answer["ResponseMetadata"]["HTTPStatusCode"] == 204
    assert options() == ("", "", False)
    assert refused(partial(s3.get_bucket_website, Bucket=bucket)) == "NoSuchWebsiteConfiguration"
