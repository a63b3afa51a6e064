"""What cannot be configured here: read, removed and set as AWS does where nothing is set."""

from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.edgecache.brain.s3.raw import Signer, send
from tests.edgecache.brain.s3.test_object_tags import refused
from tests.edgecache.cluster import Cluster, Keys

OWNER = {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
BLOCKED = {"BlockPublicAcls": True, "IgnorePublicAcls": True}
NOT_BLOCKED = {"BlockPublicPolicy": False, "RestrictPublicBuckets": False}
AES256 = {"Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]}
EVERYONE = 'uri="http://acs.amazonaws.com/groups/global/AllUsers"'


def test_an_empty_document(s3: Any, bucket: str) -> None:
    for call, answer in [
        ("get_bucket_notification_configuration", {}),
        ("get_bucket_logging", {}),
        ("get_bucket_accelerate_configuration", {}),
        ("get_bucket_request_payment", {"Payer": "BucketOwner"}),
        ("get_bucket_ownership_controls", {"OwnershipControls": OWNER}),
        ("get_public_access_block", {"PublicAccessBlockConfiguration": {**BLOCKED, **NOT_BLOCKED}}),
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
        ("get_bucket_replication", "ReplicationConfigurationNotFoundError"),
        ("get_object_lock_configuration", "ObjectLockConfigurationNotFoundError"),
    ]:
        asking = partial(getattr(s3, call), Bucket=bucket)
        assert refused(asking) == code
        assert refused(partial(asking, Bucket="absent-bucket")) == "NoSuchBucket"


def test_the_removal_of_what_is_not_set(s3: Any, bucket: str) -> None:
    for name in (
        "bucket_encryption",
        "bucket_lifecycle",
        "bucket_ownership_controls",
        "bucket_policy",
        "bucket_replication",
        "public_access_block",
    ):
        removing = getattr(s3, f"delete_{name}")
        assert removing(Bucket=bucket)["ResponseMetadata"]["HTTPStatusCode"] == 204
        assert refused(partial(removing, Bucket="absent-bucket")) == "NoSuchBucket"


def test_what_holds_may_be_set_and_nothing_else(s3: Any, bucket: str) -> None:
    accelerate, payment = "bucket_accelerate_configuration", "bucket_request_payment"
    for call, configuration, named, holds, other in (
        (accelerate, "AccelerateConfiguration", "Status", "Suspended", "Enabled"),
        (payment, "RequestPaymentConfiguration", "Payer", "BucketOwner", "Requester"),
    ):
        put = partial(getattr(s3, f"put_{call}"), Bucket=bucket)
        put(**{configuration: {named: holds}})
        with pytest.raises(ClientError, match=f"NotImplemented.*{named}: {holds}"):
            put(**{configuration: {named: other}})
    s3.put_bucket_logging(Bucket=bucket, BucketLoggingStatus={})
    s3.put_bucket_notification_configuration(Bucket=bucket, NotificationConfiguration={})
    s3.put_bucket_ownership_controls(Bucket=bucket, OwnershipControls=OWNER)
    for more in ({}, NOT_BLOCKED):
        s3.put_public_access_block(
            Bucket=bucket, PublicAccessBlockConfiguration={**BLOCKED, **more}
        )
    writer = {"Rules": [{"ObjectOwnership": "ObjectWriter"}]}
    for refusal in (
        partial(s3.put_bucket_ownership_controls, Bucket=bucket, OwnershipControls=writer),
        *(
            partial(s3.put_public_access_block, Bucket=bucket, PublicAccessBlockConfiguration=block)
            for block in ({}, {"BlockPublicAcls": True}, {**BLOCKED, "BlockPublicPolicy": True})
        ),
        partial(s3.put_bucket_encryption, Bucket=bucket, ServerSideEncryptionConfiguration=AES256),
    ):
        assert refused(refusal) == "NotImplemented"


def test_the_acl_that_holds_may_be_set_and_no_other(
    cluster: Cluster, keys: Keys, s3: Any, bucket: str
) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    of_object = partial(s3.put_object_acl, Bucket=bucket, Key="k")
    of_bucket = partial(s3.put_bucket_acl, Bucket=bucket)
    row = cluster.call("GET", f"/v1/buckets?{keys.scope}")["buckets"][0]
    for is_public, holds, other in (
        (False, "private", "public-read"),
        (True, "public-read", "private"),
    ):
        cluster.call("PATCH", f"/v1/buckets/{row['id']}?{keys.scope}", {"is_public": is_public})
        of_object(ACL=holds)
        s3.put_object(Bucket=bucket, Key="k", Body=b"x", ACL=holds)
        assert refused(partial(of_object, ACL=other)) == "AccessControlListNotSupported"
        read = s3.get_object_acl(Bucket=bucket, Key="k")
        policy = {"Owner": read["Owner"], "Grants": read["Grants"]}
        of_object(AccessControlPolicy=policy)
        policy["Grants"] = [{**policy["Grants"][0], "Permission": "READ"}]
        changed = partial(of_object, AccessControlPolicy=policy)
        assert refused(changed) == "AccessControlListNotSupported"
        of_bucket(ACL="private")
        assert refused(partial(of_bucket, ACL="public-read")) == "AccessControlListNotSupported"
        assert refused(partial(of_bucket, GrantRead=EVERYONE)) == "NotImplemented"
    absent = partial(s3.put_object_acl, Bucket=bucket, Key="absent", ACL="private")
    assert refused(absent) == "NoSuchKey"


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
    for target in ("/docs?versioning=", "/docs?acl=", "/docs?encryption=", "/docs/k?acl="):
        for method in ("PUT", "DELETE") if "encryption" in target else ("PUT",):
            assert charlie.send(method, target, b"<a/>").code == "NoSuchBucket"
            assert send(cluster.url, method, target, body=b"<a/>").code == "AccessDenied"
        assert charlie.send("GET", target).code == "NoSuchBucket"
        assert send(cluster.url, "GET", target).code == "AccessDenied"
