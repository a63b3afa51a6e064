"""Tags of buckets."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.edgecache.brain.s3.raw import Signer
from tests.edgecache.brain.s3.test_object_tags import refused, tag_set
from tests.edgecache.cluster import Cluster, Keys


def test_a_bucket_s_tags_are_set_replaced_and_removed(s3: Any, bucket: str) -> None:
    with pytest.raises(ClientError) as absent:
        s3.get_bucket_tagging(Bucket=bucket)
    assert absent.value.response["Error"]["Code"] == "NoSuchTagSet"
    assert absent.value.response["ResponseMetadata"]["HTTPStatusCode"] == 404
    many = {f"k{number:02}": "v" for number in range(50)}
    for tags in (many, {"team": "edge"}):
        s3.put_bucket_tagging(Bucket=bucket, Tagging=tag_set(tags))
        assert s3.get_bucket_tagging(Bucket=bucket)["TagSet"] == tag_set(tags)["TagSet"]
    too_many = tag_set({**many, "more": "v"})
    assert refused(lambda: s3.put_bucket_tagging(Bucket=bucket, Tagging=too_many)) == "BadRequest"
    s3.delete_bucket_tagging(Bucket=bucket)
    assert refused(lambda: s3.get_bucket_tagging(Bucket=bucket)) == "NoSuchTagSet"


def test_a_bucket_s_tags_are_the_tenant_s(
    cluster: Cluster, keys: Keys, s3: Any, bucket: str
) -> None:
    s3.put_bucket_tagging(Bucket=bucket, Tagging=tag_set({"a": "b"}))
    charlie = Signer(cluster.tenant(), cluster.url)
    reader = Signer(cluster.tenant("read", like=keys), cluster.url)
    body = b"<Tagging><TagSet/></Tagging>"
    for method in ("GET", "PUT", "DELETE"):
        assert charlie.send(method, "/docs?tagging=", body).code == "NoSuchBucket"
    for method in ("PUT", "DELETE"):
        assert reader.send(method, "/docs?tagging=", body).code == "AccessDenied"
    assert s3.get_bucket_tagging(Bucket=bucket)["TagSet"] == [{"Key": "a", "Value": "b"}]
