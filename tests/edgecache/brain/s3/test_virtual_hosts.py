"""Host names: below the API's own ones a bucket's, at them path style, at others nothing."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from edgecache.brain.aws import requests
from tests.edgecache.brain.s3.raw import Answer, Signer, send
from tests.edgecache.cluster import Cluster, Keys
from tests.edgecache.conftest import connect


def sent_to(
    host: str,
    cluster: Cluster,
    keys: Keys,
    method: str,
    target: str,
    body: bytes = b"",
    **more: str,
) -> Answer:
    """Send a signed request with this Host."""
    signer = Signer(keys, f"http://{host}")
    headers = signer.sign(method, target, more, payload="UNSIGNED-PAYLOAD")
    return send(cluster.url, method, target, headers, body)


def test_a_key_below_p_is_a_key(cluster: Cluster, keys: Keys, s3: Any, bucket: str) -> None:
    host = f"{bucket}.localhost:{cluster.port}"
    assert sent_to(host, cluster, keys, "PUT", "/p/photo", b"mine").status == 200
    assert s3.get_object(Bucket=bucket, Key="p/photo")["Body"].read() == b"mine"
    assert sent_to(host, cluster, keys, "GET", "/p/photo").body == b"mine"


def test_no_other_bucket_is_served_at_a_bucket_s_host(
    cluster: Cluster, keys: Keys, s3: Any, bucket: str
) -> None:
    # A browser lets the pages of one host read what the others have stored there.
    s3.put_object(Bucket=bucket, Key="page", Body=b"<script>", ContentType="text/html")
    row = cluster.call("GET", f"/v1/buckets?{keys.scope}")["buckets"][0]
    cluster.call("PATCH", f"/v1/buckets/{row['id']}?{keys.scope}", {"is_public": True})
    path = f"/p/{row['public_name']}/page"
    assert send(cluster.url, "GET", path).body == b"<script>"
    for host in ("other.localhost", "Other.Localhost:9000"):
        answer = send(cluster.url, "GET", path, {"host": host})
        assert (answer.status, answer.code) == (403, "AccessDenied")


def test_a_host_that_is_not_the_api_s_is_never_answered_as_if_it_were(
    cluster: Cluster, keys: Keys, s3: Any, bucket: str
) -> None:
    for host in [
        "media.s3.test",
        "s3.test:9000",
        "localhost.s3.test",
        "x",
        "docs.127.0.0.1",
        "a@[::1]",
    ]:
        s3.put_object(Bucket=bucket, Key="k", Body=b"x")
        for method, target in (
            ("GET", "/"),
            ("GET", "/?list-type=2&prefix="),
            ("GET", "/?versions"),
            ("GET", "/?policy"),
            ("GET", f"/{bucket}/k"),
            ("PUT", "/key"),
            ("PUT", f"/{bucket}/k"),
            ("DELETE", f"/{bucket}/k"),
            ("DELETE", f"/{bucket}"),
            ("POST", "/?delete"),
        ):
            for answer in (
                sent_to(host, cluster, keys, method, target),
                send(cluster.url, method, target, {"host": host}),
            ):
                assert (target, answer.status, answer.code) == (target, 400, "InvalidRequest")
                assert host in answer.text("Message")
                assert "ZBRAIN_S3_DOMAINS" in answer.text("Message")
            assert sent_to(host, cluster, keys, "HEAD", target).status == 400
        assert [row["Name"] for row in s3.list_buckets()["Buckets"]] == [bucket]
        assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"x"


def test_an_empty_host_is_no_name_of_the_api(cluster: Cluster) -> None:
    assert send(cluster.url, "GET", "/", {"host": ""}).status == 400


def test_addresses_and_localhost_are_the_api_s_in_path_style(
    cluster: Cluster, keys: Keys, s3: Any, bucket: str
) -> None:
    for host in ["127.0.0.1", "[::1]:9000", "192.0.2.7:80", "LOCALHOST."]:
        assert sent_to(host, cluster, keys, "PUT", f"/{bucket}/k", b"x").status == 200
        assert sent_to(host, cluster, keys, "GET", f"/{bucket}/k").body == b"x"
        assert f"<Name>{bucket}</Name>".encode() in sent_to(host, cluster, keys, "GET", "/").body


@pytest.mark.parametrize("target", ["//", "///", "//docs", "//docs/k", "/%2F", "/%2Fdocs/k"])
def test_an_empty_bucket_is_not_skipped(
    cluster: Cluster, keys: Keys, s3: Any, bucket: str, target: str
) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    signer = Signer(keys, cluster.url)
    for method in ("GET", "PUT", "DELETE", "POST"):
        answer = signer.send(method, target)
        assert (method, answer.status, answer.code) == (method, 400, "InvalidBucketName")
    assert [row["Name"] for row in s3.list_buckets()["Buckets"]] == [bucket]
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"x"


def test_empty_segments_belong_to_keys(cluster: Cluster, keys: Keys, s3: Any, bucket: str) -> None:
    signer = Signer(keys, cluster.url)
    for target, key in ((f"/{bucket}//", "/"), (f"/{bucket}//a//b", "/a//b")):
        assert signer.send("PUT", target, b"x").status == 200
        assert s3.get_object(Bucket=bucket, Key=key)["Body"].read() == b"x"
    host = f"{bucket}.localhost"
    assert sent_to(host, cluster, keys, "GET", "//a//b").body == b"x"


def test_the_list_of_buckets_has_its_own_parameters_only(cluster: Cluster, keys: Keys) -> None:
    for query in ["uploads", "versions", "policy", "foo", "v=1", "list-type=2", "delimiter=%2F"]:
        answer = Signer(keys, cluster.url).send("GET", f"/?{query}")
        assert (answer.status, answer.code) == (501, "NotImplemented")
        assert query.partition("=")[0] in answer.text("Message")


def test_the_names_of_the_settings_are_the_api_s(cluster: Cluster, keys: Keys) -> None:
    for host in ("objects.own.example", "s3.own.example:9000", "brain:9000", "localhost"):
        assert sent_to(host, cluster, keys, "GET", "/").status == 200
    assert sent_to("brain", cluster, keys, "PUT", "/docs").status == 200
    for name in ("objects.own.example", "s3.own.example", "localhost"):
        assert sent_to(f"docs.{name}", cluster, keys, "PUT", f"/{name}", b"x").status == 200
        assert sent_to(name, cluster, keys, "GET", f"/docs/{name}").body == b"x"
    for host in ("own.example", "s3.own.example.evil.test", "brain.own.example"):
        assert sent_to(host, cluster, keys, "GET", "/").status == 400


def test_of_two_names_the_longer_one_is_the_api_s() -> None:
    domains = ("own.example", "s3.own.example")
    assert requests.bucket_of_host("s3.own.example", domains) == ""
    assert requests.bucket_of_host("docs.s3.own.example", domains) == "docs"
    assert requests.bucket_of_host("docs.own.example", domains) == "docs"


@pytest.mark.parametrize(
    ("call", "names_bucket"),
    [
        ("get_bucket_policy", True),
        ("list_object_versions", True),
        ("get_bucket_cors", True),
        ("list_objects_v2", True),
        ("list_buckets", False),
    ],
)
def test_an_sdk_in_virtual_host_style_at_an_unknown_name_is_refused(
    cluster: Cluster, keys: Keys, bucket: str, call: str, names_bucket: bool
) -> None:
    # The server itself as the proxy: nothing resolves the names.
    options = {"proxies": {"http": cluster.url}, "s3": {"addressing_style": "virtual"}}
    client = connect(keys, "http://s3.test:9000", **options)
    with pytest.raises(ClientError, match=r"InvalidRequest.*s3\.test.*ZBRAIN_S3_DOMAINS"):
        getattr(client, call)(**({"Bucket": bucket} if names_bucket else {}))
