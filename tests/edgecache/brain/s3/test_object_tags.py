"""Tags of objects: set with an upload or later, copied, counted, within AWS's limits."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from botocore.exceptions import ClientError

from tests.edgecache.brain.s3.raw import Signer, send
from tests.edgecache.cluster import Cluster, Keys

TAGS = {"colour": "blue", "größe +=.:/@": "", "a": "x y"}


def tag_set(tags: dict[str, str]) -> dict[str, list[dict[str, str]]]:
    """Return tags as boto3 has them."""
    return {"TagSet": [{"Key": key, "Value": value} for key, value in tags.items()]}


def tags_of(s3: Any, key: str = "k") -> dict[str, str]:
    """Return an object's tags."""
    rows = s3.get_object_tagging(Bucket="docs", Key=key)["TagSet"]
    return {row["Key"]: row["Value"] for row in rows}


def refused(work: Callable[[], Any]) -> str:
    """Return the code of a refusal."""
    with pytest.raises(ClientError) as error:
        work()
    return str(error.value.response["Error"]["Code"])


def test_tags_are_set_counted_replaced_and_removed(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x", CacheControl="no-cache", Metadata={"m": "n"})
    assert tags_of(s3) == {}
    before = s3.head_object(Bucket=bucket, Key="k")
    assert "TagCount" not in before
    s3.put_object_tagging(Bucket=bucket, Key="k", Tagging=tag_set(TAGS))
    assert tags_of(s3) == TAGS
    got = s3.get_object(Bucket=bucket, Key="k")
    assert (got["Body"].read(), got["TagCount"]) == (b"x", 3)
    head = s3.head_object(Bucket=bucket, Key="k")
    assert head["TagCount"] == 3
    for name in ("ETag", "LastModified", "CacheControl", "Metadata", "ContentType"):
        assert head[name] == before[name], name
    assert "x-amz-tagging" not in head["ResponseMetadata"]["HTTPHeaders"]
    s3.put_object_tagging(Bucket=bucket, Key="k", Tagging=tag_set({"b": "1", "a": "2"}))
    assert list(tags_of(s3)) == ["a", "b"]
    s3.put_object_tagging(Bucket=bucket, Key="k", Tagging=tag_set({"only": "one"}))
    assert tags_of(s3) == {"only": "one"}
    s3.delete_object_tagging(Bucket=bucket, Key="k")
    assert tags_of(s3) == {}
    assert "TagCount" not in s3.get_object(Bucket=bucket, Key="k")


def test_a_write_replaces_the_tags(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x", Tagging=urlencode(TAGS))
    assert tags_of(s3) == TAGS
    s3.put_object(Bucket=bucket, Key="k", Body=b"y")
    assert tags_of(s3) == {}


def test_tags_survive_a_purge(cluster: Cluster, keys: Keys, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x", Tagging="a=b")
    body = {"organization_id": keys.organization_id, "environment_pk": keys.environment_pk}
    cluster.call("POST", "/v1/purge", {**body, "keys": ["docs/k"]})
    assert tags_of(s3) == {"a": "b"}
    cluster.call("POST", "/v1/purge", {**body, "keys": ["docs/k"]})
    s3.put_object_tagging(Bucket=bucket, Key="k", Tagging=tag_set({"c": "d"}))
    assert s3.get_object(Bucket=bucket, Key="k")["TagCount"] == 1
    cluster.call("POST", "/v1/purge", {**body, "keys": ["docs/k"]})
    assert tags_of(s3) == {"c": "d"}


def test_a_copy_has_its_source_s_tags_unless_they_are_replaced(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x", Tagging="a=b", Metadata={"m": "n"})
    copy = {"Bucket": bucket, "Key": "copy", "CopySource": {"Bucket": bucket, "Key": "k"}}
    s3.copy_object(**copy)
    assert tags_of(s3, "copy") == {"a": "b"}
    s3.copy_object(**copy, MetadataDirective="REPLACE", Metadata={"o": "p"})
    assert tags_of(s3, "copy") == {"a": "b"}
    s3.copy_object(**copy, TaggingDirective="REPLACE", Tagging="c=d")
    assert tags_of(s3, "copy") == {"c": "d"}
    assert s3.head_object(Bucket=bucket, Key="copy")["Metadata"] == {"m": "n"}
    s3.copy_object(**copy, TaggingDirective="REPLACE")
    assert tags_of(s3, "copy") == {}
    assert refused(lambda: s3.copy_object(**copy, TaggingDirective="X")) == "InvalidArgument"


def test_an_upload_in_parts_keeps_its_tags(s3: Any, bucket: str) -> None:
    begun = s3.create_multipart_upload(Bucket=bucket, Key="k", Tagging="a=b")
    options = {"Bucket": bucket, "Key": "k", "UploadId": begun["UploadId"]}
    part = s3.upload_part(**options, PartNumber=1, Body=b"x")
    listed = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    s3.complete_multipart_upload(**options, MultipartUpload=listed)
    assert tags_of(s3) == {"a": "b"}


@pytest.mark.parametrize(
    ("tags", "code"),
    [
        ([(f"k{number}", "v") for number in range(11)], "BadRequest"),
        ([("k" * 129, "v")], "InvalidTag"),
        ([("k", "v" * 257)], "InvalidTag"),
        ([("k", "v"), ("k", "w")], "InvalidTag"),
        ([("aws:k", "v")], "InvalidTag"),
        ([("k", "<v>")], "InvalidTag"),
        ([("k", "a\nb")], "InvalidTag"),
    ],
)
def test_tags_beyond_the_limits_are_refused(
    s3: Any, bucket: str, tags: list[tuple[str, str]], code: str
) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x", Tagging="a=b")
    rows = [{"Key": key, "Value": value} for key, value in tags]
    put = {"Bucket": bucket, "Key": "k"}
    assert refused(lambda: s3.put_object_tagging(**put, Tagging={"TagSet": rows})) == code
    # In a header the names are checked for duplicates first.
    header = "InvalidArgument" if len(dict(tags)) < len(tags) else code
    assert refused(lambda: s3.put_object(**put, Body=b"y", Tagging=urlencode(tags))) == header
    assert (tags_of(s3), s3.get_object(**put)["Body"].read()) == ({"a": "b"}, b"x")


def test_tags_at_the_limits_are_accepted(s3: Any, bucket: str) -> None:
    tags = {f"{number}" + "ü" * 127: "ß" * 256 for number in range(10)}
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    s3.put_object_tagging(Bucket=bucket, Key="k", Tagging=tag_set(tags))
    assert tags_of(s3) == tags


def test_malformed_tags_are_refused(cluster: Cluster, keys: Keys, s3: Any, bucket: str) -> None:
    signer = Signer(keys, cluster.url)
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    for body in (
        b"<Tagging/>",
        b"<Tagging><TagSet/><TagSet/></Tagging>",
        b"<Tagging><TagSet><Tag><Key>k</Key></Tag></TagSet></Tagging>",
        b"<Tagging><TagSet><Other><Key>k</Key><Value/></Other></TagSet></Tagging>",
        b"<Other/>",
    ):
        answer = signer.send("PUT", "/docs/k?tagging=", body)
        assert (answer.status, answer.code) == (400, "MalformedXML"), body
    unnamed = b"<Tagging><TagSet><Tag><Key/><Value>v</Value></Tag></TagSet></Tagging>"
    assert signer.send("PUT", "/docs/k?tagging=", unnamed).code == "InvalidTag"
    wrong = signer.send("PUT", "/docs/k", b"x", {"x-amz-tagging": "a=%ff"})
    assert (wrong.status, wrong.code) == (400, "InvalidArgument")


def test_tags_of_an_absent_object_are_refused(s3: Any, bucket: str) -> None:
    options = {"Bucket": bucket, "Key": "absent"}
    for work in (
        lambda: s3.get_object_tagging(**options),
        lambda: s3.put_object_tagging(**options, Tagging=tag_set({"a": "b"})),
        lambda: s3.delete_object_tagging(**options),
    ):
        assert refused(work) == "NoSuchKey"
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)


def test_tags_are_for_those_who_may_see_and_change_the_object(
    cluster: Cluster, keys: Keys, s3: Any, bucket: str
) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x", Tagging="secret=word")
    found = cluster.call("GET", f"/v1/buckets?{keys.scope}")["buckets"][0]
    cluster.call("PATCH", f"/v1/buckets/{found['id']}?{keys.scope}", {"is_public": True})
    name = found["public_name"]
    assert send(cluster.url, "GET", f"/{name}/k").body == b"x"
    for target in (f"/{name}/k", f"/p/{name}/k", f"/{name}/k?tagging"):
        answer = send(cluster.url, "GET", target)
        assert "secret" not in str(answer.headers) + answer.body.decode(), target
    assert answer.status == 403
    reader = Signer(cluster.tenant("read", like=keys), cluster.url)
    assert b"secret" in reader.send("GET", "/docs/k?tagging=").body
    body = b"<Tagging><TagSet/></Tagging>"
    assert reader.send("PUT", "/docs/k?tagging=", body).status == 403
    assert reader.send("DELETE", "/docs/k?tagging=").status == 403
    charlie = Signer(cluster.tenant(), cluster.url)
    for method in ("GET", "PUT", "DELETE"):
        assert charlie.send(method, "/docs/k?tagging=", body).code == "NoSuchBucket"
    assert tags_of(s3) == {"secret": "word"}
