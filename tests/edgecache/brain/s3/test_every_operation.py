"""Every operation of the installed botocore: it does what its name says, or it is refused.

Clients learn new operations every few months; none may be carried out as another one.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import botocore.session
import pytest
from botocore import xform_name
from botocore.exceptions import BotoCoreError, ClientError

from tests.edgecache.brain.s3.raw import md5
from tests.edgecache.cluster import Cluster
from tests.edgecache.conftest import connect

MODEL: Any = botocore.session.get_session().get_service_model("s3")
# By operation: what it may change.
WRITES = {
    "AbortMultipartUpload": "uploads",
    "CompleteMultipartUpload": "objects object tags uploads",
    "CopyObject": "objects",
    "CreateBucket": "buckets",
    "CreateMultipartUpload": "uploads",
    "DeleteBucket": "buckets",
    "DeleteBucketCors": "cors",
    "DeleteBucketTagging": "bucket tags",
    "DeleteObject": "objects object tags",
    "DeleteObjectTagging": "object tags",
    "DeleteObjects": "objects object tags",
    "DeleteBucketLifecycle": "lifecycle",
    "PutBucketCors": "cors",
    "PutBucketLifecycleConfiguration": "lifecycle",
    "PutBucketTagging": "bucket tags",
    "PutBucketVersioning": "versioning",
    "PutObject": "objects object tags",
    "PutObjectTagging": "object tags",
    "UploadPart": "uploads",
    "UploadPartCopy": "uploads",
}
READS = {
    "GetBucketAccelerateConfiguration",
    "GetBucketAcl",
    "GetBucketCors",
    "GetBucketLifecycle",
    "GetBucketLifecycleConfiguration",
    "GetBucketLocation",
    "GetBucketLogging",
    "GetBucketNotification",
    "GetBucketNotificationConfiguration",
    "GetBucketOwnershipControls",
    "GetBucketRequestPayment",
    "GetBucketTagging",
    "GetBucketVersioning",
    "GetObject",
    "GetObjectAcl",
    "GetObjectAttributes",
    "GetObjectTagging",
    "GetPublicAccessBlock",
    "HeadBucket",
    "HeadObject",
    "ListBuckets",
    "ListMultipartUploads",
    "ListObjectVersions",
    "ListObjects",
    "ListObjectsV2",
    "ListParts",
}
# Of settings that no bucket has.
REMOVALS = {
    "DeleteBucketEncryption",
    "DeleteBucketOwnershipControls",
    "DeleteBucketPolicy",
    "DeleteBucketReplication",
    "DeleteBucketWebsite",
    "DeletePublicAccessBlock",
}
# Writes of nothing, which is what holds.
EMPTY = {
    "PutBucketLogging",
    "PutBucketNotification",
    "PutBucketNotificationConfiguration",
}
OTHERS = sorted({*MODEL.operation_names} - {*WRITES} - READS - REMOVALS - EMPTY)
# Members of requests that are honoured, or ask for what holds in any case; all others are refused.
KNOWN = {
    "ACL",
    "BucketRegion",
    "BypassGovernanceRetention",
    "CacheControl",
    "ChecksumAlgorithm",
    "ChecksumMode",
    "ChecksumType",
    "ContentDisposition",
    "ContentEncoding",
    "ContentLanguage",
    "ContentType",
    "CopySourceIfNoneMatch",
    "CopySourceIfUnmodifiedSince",
    "Delimiter",
    "EncodingType",
    "Expires",
    "FetchOwner",
    "IfNoneMatch",
    "IfUnmodifiedSince",
    "KeyMarker",
    "Marker",
    "MaxBuckets",
    "MaxKeys",
    "MaxParts",
    "MaxUploads",
    "Metadata",
    "MetadataDirective",
    "OptionalObjectAttributes",
    "PartNumber",
    "PartNumberMarker",
    "Prefix",
    "Range",
    "RequestPayer",
    "ResponseCacheControl",
    "ResponseContentDisposition",
    "ResponseContentEncoding",
    "ResponseContentLanguage",
    "ResponseContentType",
    "ResponseExpires",
    "StartAfter",
    "StorageClass",
    "Tagging",
    "TaggingDirective",
    "UploadIdMarker",
}
BUCKET, KEY, PART = "media", "note", b"a part"
RULE = {"AllowedOrigins": ["https://a.example"], "AllowedMethods": ["GET"]}
EXPIRY = {"Filter": {}, "Status": "Enabled", "ID": "a", "Expiration": {"Days": 5}}
TAGS = {"TagSet": [{"Key": "team", "Value": "a"}]}


class Tenant:
    """A tenant with one of everything that can be stored."""

    def __init__(self, cluster: Cluster) -> None:
        self.keys = cluster.tenant()
        # The host prefix of one operation is not resolvable.
        self.s3 = connect(self.keys, cluster.url, inject_host_prefix=False)
        self.s3.create_bucket(Bucket=BUCKET)
        self.s3.create_bucket(Bucket="empty")
        for key in (KEY, "other"):
            self.s3.put_object(
                Bucket=BUCKET, Key=key, Body=key.encode(), Metadata={"a": "b"}, Tagging="kind=c"
            )
        self.s3.put_bucket_cors(Bucket=BUCKET, CORSConfiguration={"CORSRules": [RULE]})
        self.s3.put_bucket_lifecycle_configuration(
            Bucket=BUCKET, LifecycleConfiguration={"Rules": [EXPIRY]}
        )
        self.s3.put_bucket_tagging(Bucket=BUCKET, Tagging=TAGS)
        upload = self.s3.create_multipart_upload(Bucket=BUCKET, Key=KEY)
        self.named = {"Bucket": BUCKET, "Key": KEY, "UploadId": upload["UploadId"]}
        self.s3.upload_part(**self.named, PartNumber=1, Body=PART)
        self.before = self.state()

    def state(self) -> dict[str, Any]:
        """Return everything that is stored."""
        s3 = self.s3
        found: dict[str, Any] = {"buckets": s3.list_buckets()["Buckets"], "objects": {}}
        found |= {"object tags": {}, "bucket tags": {}, "cors": {}, "lifecycle": {}}
        found["uploads"] = []
        found["versioning"] = s3.get_bucket_versioning(Bucket=BUCKET).get("Status")
        for name in [row["Name"] for row in found["buckets"]]:
            for row in s3.list_objects_v2(Bucket=name).get("Contents", []):
                target = {"Bucket": name, "Key": row["Key"]}
                got = s3.get_object(**target)
                stored = (got["Body"].read(), got["Metadata"], got["ContentType"], row["ETag"])
                found["objects"][name, row["Key"]] = (*stored, row["LastModified"])
                tags = s3.get_object_tagging(**target)["TagSet"]
                found["object tags"][name, row["Key"]] = tags
            found["bucket tags"][name] = _answer(s3.get_bucket_tagging, name, "TagSet")
            rules = s3.get_bucket_lifecycle_configuration
            found["lifecycle"][name] = _answer(rules, name, "Rules")
            found["cors"][name] = _answer(s3.get_bucket_cors, name, "CORSRules")
            for row in s3.list_multipart_uploads(Bucket=name).get("Uploads", []):
                target = {"Bucket": name, "Key": row["Key"], "UploadId": row["UploadId"]}
                parts = s3.list_parts(**target).get("Parts", [])
                found["uploads"].append((row["UploadId"], parts))
        return found

    def call(self, name: str, **more: Any) -> Any:
        """Call an operation with the parameters that it needs, and more."""
        shape = MODEL.operation_model(name).input_shape
        given = {} if shape is None else _members(shape, self.named)
        given |= {**PARAMETERS.get(name, {}), **more}
        return getattr(self.s3, xform_name(name))(**given)


def _answer(read: Any, bucket: str, field: str) -> Any:
    try:
        return read(Bucket=bucket)[field]
    except ClientError as error:
        return error.response["Error"]["Code"]


# Where the generated values are not plausible, or must be a certain resource's.
PARAMETERS: Mapping[str, Mapping[str, Any]] = {
    "CompleteMultipartUpload": {
        "MultipartUpload": {"Parts": [{"PartNumber": 1, "ETag": md5(PART).hex()}]}
    },
    "CopyObject": {"CopySource": f"{BUCKET}/other"},
    "CreateBucket": {"Bucket": "another"},
    "DeleteBucket": {"Bucket": "empty"},
    "DeleteObjects": {"Delete": {"Objects": [{"Key": KEY}]}},
    "GetObjectAttributes": {"ObjectAttributes": ["ETag"]},
    "ListDirectoryBuckets": {"MaxDirectoryBuckets": 5},
    "PutBucketCors": {"CORSConfiguration": {"CORSRules": [{**RULE, "MaxAgeSeconds": 5}]}},
    "PutBucketLifecycleConfiguration": {
        "LifecycleConfiguration": {"Rules": [{**EXPIRY, "Expiration": {"Days": 6}}]}
    },
    "PutBucketTagging": {"Tagging": {"TagSet": [{"Key": "team", "Value": "b"}]}},
    "PutBucketVersioning": {"VersioningConfiguration": {"Status": "Enabled"}},
    "PutObject": {"Body": b"another"},
    "PutObjectTagging": {"Tagging": TAGS},
    "UpdateObjectEncryption": {
        "ObjectEncryption": {"SSEKMS": {"KMSKeyArn": "arn:aws:kms:us-east-1:1:key/a"}}
    },
    "UploadPart": {"Body": b"another part"},
    "UploadPartCopy": {"CopySource": f"{BUCKET}/other", "PartNumber": 2},
}


def _members(shape: Any, named: Mapping[str, Any]) -> dict[str, Any]:
    """Return values for the required members of a structure, and for the body of a request."""
    wanted = {*shape.required_members, shape.serialization.get("payload")} & {*shape.members}
    return {name: named.get(name) or _value(shape.members[name], named) for name in wanted}


def _value(shape: Any, named: Mapping[str, Any]) -> Any:
    if shape.type_name == "structure":
        return _members(shape, {})
    if shape.type_name == "list":
        return [_value(shape.member, {})]
    if shape.type_name == "map":
        return {"a": "b"}
    values = {"integer": 1, "long": 1, "boolean": True, "blob": b"another"}
    if shape.type_name == "timestamp":
        return datetime(2030, 1, 1, tzinfo=UTC)
    return values.get(shape.type_name) or (shape.enum[0] if shape.enum else "a")


def test_an_operation_that_is_not_offered_is_refused_and_changes_nothing(cluster: Cluster) -> None:
    tenant = Tenant(cluster)
    for name in OTHERS:
        with pytest.raises(ClientError) as refused:
            tenant.call(name)
        status = refused.value.response["ResponseMetadata"]["HTTPStatusCode"]
        assert (name, 400 <= status < 502) == (name, True)
        # The message names what is refused.
        assert "A header or query you provided" not in str(refused.value)
        if MODEL.operation_model(name).http["method"] != "GET":
            assert (name, tenant.state()) == (name, tenant.before)
    assert tenant.state() == tenant.before


def test_a_read_or_a_write_of_what_holds_is_answered_and_changes_nothing(
    cluster: Cluster,
) -> None:
    tenant = Tenant(cluster)
    for name in sorted(READS | REMOVALS | EMPTY):
        status = tenant.call(name)["ResponseMetadata"]["HTTPStatusCode"]
        assert (name, status) == (name, 204 if name in REMOVALS else 200)
    assert tenant.state() == tenant.before


@pytest.mark.parametrize("name", WRITES)
def test_a_write_changes_what_it_names(cluster: Cluster, name: str) -> None:
    tenant = Tenant(cluster)
    tenant.call(name)
    after = tenant.state()
    changed = {part for part in after if after[part] != tenant.before[part]}
    if name in {"CreateBucket", "DeleteBucket"}:
        # The other parts have a row for each bucket.
        assert changed == {"buckets", "bucket tags", "cors", "lifecycle"}
    else:
        assert changed
        assert all(part in WRITES[name] for part in changed)


def test_a_member_of_a_request_that_is_not_known_is_refused(cluster: Cluster) -> None:
    tenant = Tenant(cluster)
    for name in sorted({*WRITES} | READS):
        shape = MODEL.operation_model(name).input_shape
        others = {*shape.members} - {*shape.required_members} - KNOWN
        for member in sorted(others - {shape.serialization.get("payload")}):
            value = _value(shape.members[member], {})
            # A wrong value is refused as well, and what the client itself refuses is not sent.
            with pytest.raises((ClientError, BotoCoreError)):
                tenant.call(name, **{member: value})
    assert tenant.state() == tenant.before
