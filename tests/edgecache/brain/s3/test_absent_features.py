"""Reads of what cannot be configured here: answered as AWS does where nothing is."""

from functools import partial
from typing import Any

import pytest

from tests.edgecache.brain.s3.raw import Signer, send
from tests.edgecache.brain.s3.test_object_tags import refused
from tests.edgecache.cluster import Cluster, Keys


def test_an_empty_document(s3: Any, bucket: str) -> None:
    for call, answer in [
        ("get_bucket_versioning", {}),
        ("get_bucket_notification_configuration", {}),
        ("get_bucket_logging", {}),
        ("get_bucket_accelerate_configuration", {}),
        ("get_bucket_request_payment", {"Payer": "BucketOwner"}),
    ]:
        found = getattr(s3, call)(Bucket=bucket)
        found.pop("ResponseMetadata")
        assert found == answer


def test_an_absent_configuration(s3: Any, bucket: str) -> None:
    for call, code in [
        ("get_bucket_lifecycle_configuration", "NoSuchLifecycleConfiguration"),
        ("get_bucket_encryption", "ServerSideEncryptionConfigurationNotFoundError"),
        ("get_bucket_policy", "NoSuchBucketPolicy"),
        ("get_bucket_policy_status", "NoSuchBucketPolicy"),
        ("get_public_access_block", "NoSuchPublicAccessBlockConfiguration"),
        ("get_bucket_ownership_controls", "OwnershipControlsNotFoundError"),
        ("get_bucket_website", "NoSuchWebsiteConfiguration"),
        ("get_bucket_replication", "ReplicationConfigurationNotFoundError"),
        ("get_object_lock_configuration", "ObjectLockConfigurationNotFoundError"),
    ]:
        asking = partial(getattr(s3, call), Bucket=bucket)
        assert refused(asking) == code
        assert refused(partial(asking, Bucket="absent-bucket")) == "NoSuchBucket"


@pytest.mark.parametrize("call", ["get_object_retention", "get_object_legal_hold"])
def test_an_object_has_no_lock(s3: Any, bucket: str, call: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    assert refused(lambda: getattr(s3, call)(Bucket=bucket, Key="k")) == "InvalidRequest"
    assert refused(lambda: getattr(s3, call)(Bucket=bucket, Key="absent")) == "NoSuchKey"


def test_acls_are_the_owner_s(cluster: Cluster, keys: Keys, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    owner = {"ID": s3.list_buckets()["Owner"]["ID"]}
    mine = {"Grantee": {**owner, "Type": "CanonicalUser"}, "Permission": "FULL_CONTROL"}
    acl = s3.get_bucket_acl(Bucket=bucket)
    assert (acl["Owner"], acl["Grants"]) == (owner, [mine])
    assert s3.get_object_acl(Bucket=bucket, Key="k")["Grants"] == [mine]
    assert refused(lambda: s3.get_object_acl(Bucket=bucket, Key="absent")) == "NoSuchKey"
    row = cluster.call("GET", f"/v1/buckets?{keys.scope}")["buckets"][0]
    cluster.call("PATCH", f"/v1/buckets/{row['id']}?{keys.scope}", {"is_public": True})
    everyone = s3.get_object_acl(Bucket=bucket, Key="k")["Grants"][1]
    assert everyone["Grantee"]["URI"].endswith("/AllUsers")
    assert everyone["Permission"] == "READ"


def test_only_the_tenant_reads_them(cluster: Cluster, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    charlie = Signer(cluster.tenant(), cluster.url)
    for target in ("/docs?versioning=", "/docs?acl=", "/docs?policy=", "/docs/k?acl="):
        assert charlie.send("GET", target).code == "NoSuchBucket"
        assert send(cluster.url, "GET", target).code == "AccessDenied"
