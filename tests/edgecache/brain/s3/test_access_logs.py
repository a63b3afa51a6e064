"""A bucket's access log through the front door: set, refused, written, and never a tenant's own."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.error import HTTPError

import pytest

from tests.edgecache.brain.s3.objects.test_posted_forms import Form
from tests.edgecache.brain.s3.raw import Signer, send
from tests.edgecache.brain.s3.test_access_log_lines import AWS
from tests.edgecache.brain.s3.test_object_tags import refused
from tests.edgecache.cluster import Cluster, Keys
from tests.edgecache.conftest import connect

TARGET = "/docs?logging="


@pytest.fixture
def signer(cluster: Cluster, keys: Keys, bucket: str) -> Signer:
    """Return a signer of the tenant."""
    return Signer(keys, cluster.url)


def enabled(target: str = "logs", prefix: str = "docs/") -> dict[str, Any]:
    return {"LoggingEnabled": {"TargetBucket": target, "TargetPrefix": prefix}}


def test_a_log_is_set_changed_and_ended_by_s3_and_by_the_api(
    cluster: Cluster, keys: Keys, s3: Any, bucket: str
) -> None:
    def status() -> Any:
        found = s3.get_bucket_logging(Bucket=bucket)
        found.pop("ResponseMetadata")
        return found

    s3.create_bucket(Bucket="logs")
    assert status() == {}
    for wanted in (enabled(), enabled(prefix=""), {}):
        s3.put_bucket_logging(Bucket=bucket, BucketLoggingStatus=wanted)
        assert status() == wanted
    row = cluster.call("GET", f"/v1/buckets/docs?{keys.scope}")
    assert (row["log_bucket"], row["log_prefix"]) == ("", "")
    path = f"/v1/buckets/{row['id']}?{keys.scope}"
    changed = cluster.call("PATCH", path, {"log_bucket": "logs", "log_prefix": "ü"})
    assert (changed["log_bucket"], changed["log_prefix"]) == ("logs", "ü")
    assert status() == enabled(prefix="ü")
    simple = enabled()
    simple["LoggingEnabled"]["TargetObjectKeyFormat"] = {"SimplePrefix": {}}
    s3.put_bucket_logging(Bucket=bucket, BucketLoggingStatus=simple)
    assert status() == enabled()


def test_what_cannot_keep_a_log_is_refused(
    cluster: Cluster, keys: Keys, s3: Any, bucket: str
) -> None:
    charlie = cluster.tenant()
    connect(charlie, cluster.url).create_bucket(Bucket="charlies")
    origin = cluster.call(
        "POST",
        f"/v1/origins?{keys.scope}",
        {"name": "o", "kind": "http", "config": {"url": "http://127.0.0.1:9"}},
    )
    made = {"name": "cached", "origin_id": origin["id"]}
    cluster.call("POST", f"/v1/buckets?{keys.scope}", made)
    row = cluster.call("GET", f"/v1/buckets/docs?{keys.scope}")
    put = partial(s3.put_bucket_logging, Bucket=bucket)
    for target in ("docs", "charlies", "absent", "cached", "not a name"):
        wanted = enabled(target)
        assert refused(partial(put, BucketLoggingStatus=wanted)) == "InvalidTargetBucketForLogging"
        new = {"name": "another", "log_bucket": "another" if target == "docs" else target}
        for method, path, body in (
            ("PATCH", f"/v1/buckets/{row['id']}", {"log_bucket": target}),
            ("POST", "/v1/buckets", new),
        ):
            with pytest.raises(HTTPError) as error:
                cluster.call(method, f"{path}?{keys.scope}", body)
            with error.value as answer:
                assert json.load(answer)["errors"][0]["field"] == "log_bucket"
    assert "LoggingEnabled" not in s3.get_bucket_logging(Bucket=bucket)


def test_what_a_log_cannot_have_is_refused_by_name(signer: Signer, s3: Any) -> None:
    s3.create_bucket(Bucket="logs")
    target = "<TargetBucket>logs</TargetBucket>"
    by_date = "<TargetObjectKeyFormat><PartitionedPrefix/></TargetObjectKeyFormat>"
    for inner, code in [
        (f"{target}<TargetPrefix/><TargetGrants/>", "NotImplemented"),
        (f"{target}<TargetPrefix/>{by_date}", "NotImplemented"),
        ("<TargetPrefix>a</TargetPrefix>", "MalformedXML"),
        (f"{target}{target}<TargetPrefix/>", "MalformedXML"),
        (f"{target}<TargetPrefix/><Other/>", "MalformedXML"),
        (f"{target}<TargetPrefix>{'x' * 201}</TargetPrefix>", "InvalidArgument"),
        (f"{target}<TargetPrefix>{'x' * 1025}</TargetPrefix>", "InvalidArgument"),
    ]:
        body = (
            f"<BucketLoggingStatus><LoggingEnabled>{inner}</LoggingEnabled></BucketLoggingStatus>"
        )
        answer = signer.send("PUT", TARGET, body.encode())
        assert (answer.code, inner) == (code, inner)
    assert "LoggingEnabled" not in s3.get_bucket_logging(Bucket="docs")


def test_the_log_is_the_tenant_s(cluster: Cluster, keys: Keys, s3: Any, bucket: str) -> None:
    s3.create_bucket(Bucket="logs")
    s3.put_bucket_logging(Bucket=bucket, BucketLoggingStatus=enabled())
    charlie = Signer(cluster.tenant(), cluster.url)
    reader = Signer(cluster.tenant("read", like=keys), cluster.url)
    body = b"<BucketLoggingStatus/>"
    for method in ("GET", "PUT"):
        assert charlie.send(method, TARGET, body).code == "NoSuchBucket"
    assert reader.send("PUT", TARGET, body).code == "AccessDenied"
    assert "LoggingEnabled" in s3.get_bucket_logging(Bucket=bucket)


@pytest.mark.slow
def test_the_requests_of_all_doors_are_in_the_log_when_the_brain_stops(
    start: Callable[..., Cluster],
) -> None:
    brain = start()
    keys = brain.tenant()
    s3 = connect(keys, brain.url)
    for name in ("docs", "logs", "quiet"):
        s3.create_bucket(Bucket=name)
    row = brain.call("GET", f"/v1/buckets/docs?{keys.scope}")
    options = {"is_public": True, "log_bucket": "logs", "log_prefix": "of docs/"}
    brain.call("PATCH", f"/v1/buckets/{row['id']}?{keys.scope}", options)
    s3.put_object(Bucket="docs", Key="a b", Body=b"12345")
    s3.get_object(Bucket="docs", Key="a b")
    s3.put_object(Bucket="quiet", Key="q", Body=b"x")
    assert refused(lambda: s3.get_object(Bucket="docs", Key="absent")) == "NoSuchKey"
    signer = Signer(keys, brain.url)
    send(brain.url, "GET", signer.presign("GET", "/docs/a%20b"))
    assert Form(keys, brain.url).post().status == 204
    # Refused before the bucket is read.
    reader = Signer(brain.tenant("read", keys), brain.url)
    assert reader.send("PUT", "/docs/a", b"x").code == "AccessDenied"
    policy = signer.send("PUT", "/docs?policy=", b"{}")
    assert policy.code == "NotImplemented"
    assert policy.text("Message") == "PUT with the parameter policy is not implemented."
    evil = {"user-agent": 'evil" 200 -', "referer": "https://a/?X-Amz-Signature=5ecre7"}
    send(brain.url, "GET", f"/p/{row['public_name']}/a%20b?token=5ecre7", evil)
    brain.call("PATCH", f"/v1/buckets/{row['id']}?{keys.scope}", {"is_public": False})
    assert send(brain.url, "GET", f"/p/{row['public_name']}/a%20b").status == 404
    # Not the tenant's: neither its signature nor its key is known.
    stranger = Signer(brain.tenant(), brain.url)
    assert stranger.send("GET", "/docs/a%20b").code == "NoSuchBucket"
    wrong = Signer(Keys(1, 1, keys.access_key, "wrong"), brain.url)
    assert wrong.send("GET", "/docs/a%20b").code == "SignatureDoesNotMatch"
    brain.stop()
    brain.start()
    (logged,) = s3.list_objects_v2(Bucket="logs")["Contents"]
    assert logged["Key"].startswith("of docs/20")
    text = s3.get_object(Bucket="logs", Key=logged["Key"])["Body"].read().decode("ascii")
    lines = [AWS.fullmatch(line) for line in text.splitlines(keepends=True)]
    found = [line.groups() for line in lines if line is not None]
    assert len(found) == len(lines)
    assert [(each[6], each[7], each[9], each[10], each[11], each[21]) for each in found] == [
        ("REST.PUT.OBJECT", "a%20b", "200", "-", "-", "AuthHeader"),
        ("REST.GET.OBJECT", "a%20b", "200", "-", "5", "AuthHeader"),
        ("REST.GET.OBJECT", "absent", "404", "NoSuchKey", found[2][11], "AuthHeader"),
        ("REST.GET.OBJECT", "a%20b", "200", "-", "5", "QueryString"),
        ("REST.POST.OBJECT", "in/a.txt", "204", "-", "-", "-"),
        ("REST.PUT.OBJECT", "a", "403", "AccessDenied", found[5][11], "AuthHeader"),
        ("REST.PUT.BUCKET", "-", "501", "NotImplemented", found[6][11], "AuthHeader"),
        ("WEBSITE.GET.OBJECT", "a%20b", "200", "-", "5", "-"),
        ("WEBSITE.GET.OBJECT", "a%20b", "404", "no-such-bucket", found[8][11], "-"),
    ]
    key, reads = keys.access_key, reader.keys.access_key
    assert [each[4] for each in found] == [key] * 5 + [reads, key] + ["-"] * 2
    assert "5ecre7" not in text
    assert "X-Amz-Signature=***" in found[3][8]
    assert {each[19] for each in found[:7]} == {"SigV4"}
