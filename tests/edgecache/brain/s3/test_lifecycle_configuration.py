"""A bucket's lifecycle configuration: stored as it was sent, AWS's checks, and what headers say."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.edgecache.brain.s3.raw import Signer
from tests.edgecache.brain.s3.test_object_tags import refused
from tests.edgecache.cluster import Cluster, Keys

ABORT = {"DaysAfterInitiation": 3}
RULES: list[dict[str, Any]] = [
    {"ID": "old", "Prefix": "logs/", "Status": "Enabled", "Expiration": {"Days": 30}},
    {"ID": "empty", "Filter": {}, "Status": "Disabled", "AbortIncompleteMultipartUpload": ABORT},
    {
        "ID": "date",
        "Filter": {"Tag": {"Key": "ü", "Value": "x y"}},
        "Status": "Enabled",
        "Expiration": {"Date": datetime(2031, 1, 2, tzinfo=UTC)},
    },
    {
        "ID": "both",
        "Filter": {
            "And": {
                "Prefix": "",
                "Tags": [{"Key": "a", "Value": "b"}, {"Key": "c", "Value": ""}],
                "ObjectSizeGreaterThan": 0,
                "ObjectSizeLessThan": 2**40,
            }
        },
        "Status": "Enabled",
        "Expiration": {"Days": 1},
    },
    {
        "ID": "versions",
        "Filter": {"Prefix": "v/"},
        "Status": "Enabled",
        "Expiration": {"ExpiredObjectDeleteMarker": True},
        "NoncurrentVersionExpiration": {"NoncurrentDays": 4, "NewerNoncurrentVersions": 100},
    },
    {
        "ID": "size",
        "Filter": {"ObjectSizeLessThan": 1},
        "Status": "Enabled",
        "Expiration": {"Days": 2},
    },
]
DAY = "<Expiration><Days>1</Days></Expiration>"
ABORTED = "<DaysAfterInitiation>1</DaysAfterInitiation>"
ABORTING = f"<AbortIncompleteMultipartUpload>{ABORTED}</AbortIncompleteMultipartUpload>"
ALL = "<Filter/><Status>Enabled</Status>"
TAG = "<Tag><Key>a</Key><Value>b</Value></Tag>"
MARKER = "<ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker>"
NONCURRENT = (
    "<NoncurrentVersionExpiration><NoncurrentDays>{}</NoncurrentDays>"
    "<NewerNoncurrentVersions>{}</NewerNoncurrentVersions></NoncurrentVersionExpiration>"
)
TARGET = "/docs?lifecycle="


@pytest.fixture
def signer(cluster: Cluster, keys: Keys, bucket: str) -> Signer:
    """Return a signer of the tenant."""
    return Signer(keys, cluster.url)


def put(s3: Any, rules: list[dict[str, Any]]) -> Any:
    return s3.put_bucket_lifecycle_configuration(
        Bucket="docs", LifecycleConfiguration={"Rules": rules}
    )


def document(*rules: str) -> bytes:
    rows = "".join(f"<Rule>{each}</Rule>" for each in rules)
    return f"<LifecycleConfiguration>{rows}</LifecycleConfiguration>".encode()


def filtered(conditions: str, actions: str = DAY) -> str:
    return f"<Filter>{conditions}</Filter><Status>Enabled</Status>{actions}"


def test_a_configuration_is_stored_replaced_and_removed(s3: Any, bucket: str) -> None:
    def rules() -> Any:
        return s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]

    assert refused(rules) == "NoSuchLifecycleConfiguration"
    said = put(s3, RULES)["TransitionDefaultMinimumObjectSize"]
    assert said == "all_storage_classes_128K"
    assert rules() == RULES
    put(s3, [{name: value for name, value in RULES[0].items() if name != "ID"}])
    (found,) = rules()
    assert found == {**RULES[0], "ID": found["ID"]}
    assert len(found["ID"]) > 20
    s3.delete_bucket_lifecycle(Bucket=bucket)
    assert refused(rules) == "NoSuchLifecycleConfiguration"


def test_what_aws_refuses_and_what_rules_cannot_do_is_refused(signer: Signer) -> None:
    past = "<Expiration><Date>{}</Date></Expiration>"
    for rules, code in [
        ("", "MalformedXML"),
        ("<Other/>", "MalformedXML"),
        (f"{ALL}{DAY}<Other/>", "MalformedXML"),
        (f"{ALL}{DAY}{DAY}", "MalformedXML"),
        (f"<Status>Enabled</Status>{DAY}", "MalformedXML"),
        (f"<Prefix/>{ALL}{DAY}", "MalformedXML"),
        (f"<Filter/>{DAY}", "MalformedXML"),
        (f"<Filter/><Status>enabled</Status>{DAY}", "MalformedXML"),
        (filtered("<Prefix>a</Prefix>" + TAG), "MalformedXML"),
        (filtered("<Prefix><a/></Prefix>"), "MalformedXML"),
        (filtered("<And/>"), "MalformedXML"),
        (filtered("<And><Prefix/><Prefix/></And>"), "MalformedXML"),
        (filtered("<Tag><Key>a</Key></Tag>"), "MalformedXML"),
        (filtered("<ObjectSizeLessThan>few</ObjectSizeLessThan>"), "MalformedXML"),
        (filtered("<ObjectSizeLessThan>0</ObjectSizeLessThan>"), "InvalidRequest"),
        (filtered("<ObjectSizeGreaterThan>-1</ObjectSizeGreaterThan>"), "InvalidRequest"),
        (
            filtered(
                "<And><ObjectSizeGreaterThan>5</ObjectSizeGreaterThan>"
                "<ObjectSizeLessThan>5</ObjectSizeLessThan></And>"
            ),
            "InvalidRequest",
        ),
        (filtered(f"<And>{TAG}{TAG}</And>"), "InvalidRequest"),
        (filtered("<Tag><Key>aws:a</Key><Value/></Tag>"), "InvalidTag"),
        (filtered(f"<Prefix>{'é' * 513}</Prefix>"), "InvalidRequest"),
        (filtered(TAG, ABORTING), "InvalidRequest"),
        (
            filtered("<ObjectSizeLessThan>1</ObjectSizeLessThan>", DAY + ABORTING),
            "InvalidRequest",
        ),
        (ALL, "InvalidRequest"),
        (f"{ALL}<Expiration/>", "MalformedXML"),
        (f"{ALL}<Expiration><Days>0</Days></Expiration>", "InvalidArgument"),
        (f"{ALL}<Expiration><Days>-1</Days></Expiration>", "InvalidArgument"),
        (f"{ALL}<Expiration><Days>2147483648</Days></Expiration>", "InvalidArgument"),
        (f"{ALL}<Expiration><Days>1.5</Days></Expiration>", "MalformedXML"),
        (f"{ALL}<Expiration><Days>1</Days><Date>2031-01-01</Date></Expiration>", "MalformedXML"),
        (ALL + past.format("2031-01-01T00:00:01Z"), "InvalidArgument"),
        (ALL + past.format("2031-01-01T00:00:00+01:00"), "InvalidArgument"),
        (ALL + past.format("2031-02-30"), "MalformedXML"),
        (ALL + past.format("soon"), "MalformedXML"),
        (f"{ALL}<Expiration>{MARKER}<Days>1</Days></Expiration>", "MalformedXML"),
        (f"{ALL}<Expiration>{MARKER.replace('true', 'yes')}</Expiration>", "MalformedXML"),
        (filtered(TAG, f"<Expiration>{MARKER}</Expiration>"), "InvalidRequest"),
        (f"{ALL}<NoncurrentVersionExpiration/>", "MalformedXML"),
        (ALL + NONCURRENT.format(0, 1), "InvalidArgument"),
        (ALL + NONCURRENT.format(1, 0), "InvalidArgument"),
        (ALL + NONCURRENT.format(1, 101), "InvalidArgument"),
        (f"{ALL}<AbortIncompleteMultipartUpload/>", "MalformedXML"),
        (ALL + ABORTING.replace(">1<", ">0<"), "InvalidArgument"),
        (f"<ID>{'x' * 256}</ID>{ALL}{DAY}", "InvalidArgument"),
        (f"<ID>a</ID>{ALL}{DAY}</Rule><Rule><ID>a</ID>{ALL}{DAY}", "InvalidArgument"),
        (
            f"{ALL}<Transition><Days>1</Days><StorageClass>GLACIER</StorageClass></Transition>",
            "NotImplemented",
        ),
        (f"{ALL}{DAY}<NoncurrentVersionTransition/>", "NotImplemented"),
    ]:
        body = document(rules) if rules else document()
        answer = signer.send("PUT", TARGET, body)
        assert answer.code == code, rules
        assert answer.status == (501 if code == "NotImplemented" else 400)
        assert signer.send("GET", TARGET).code == "NoSuchLifecycleConfiguration"
    header = {"x-amz-transition-default-minimum-object-size": "varies_by_storage_class"}
    assert signer.send("PUT", TARGET, document(ALL + DAY), header).code == "NotImplemented"
    too_long = document(*(f"<ID>{'x' * 250}{number}</ID>{ALL}{DAY}" for number in range(1000)))
    assert signer.send("PUT", TARGET, too_long * 2).code == "MaxMessageLengthExceeded"


def test_a_thousand_rules_are_accepted_and_not_one_more(signer: Signer) -> None:
    rules = [f"<ID>{number}</ID>{ALL}{DAY}" for number in range(1001)]
    assert signer.send("PUT", TARGET, document(*rules)).code == "InvalidRequest"
    assert signer.send("PUT", TARGET, document(*rules[:1000])).status == 200
    assert signer.send("GET", TARGET).body.count(b"<Rule>") == 1000


def test_the_configuration_is_the_tenant_s(
    cluster: Cluster, keys: Keys, s3: Any, bucket: str
) -> None:
    put(s3, RULES)
    charlie = Signer(cluster.tenant(), cluster.url)
    reader = Signer(cluster.tenant("read", like=keys), cluster.url)
    body = document(ALL + DAY)
    for method in ("GET", "PUT", "DELETE"):
        assert charlie.send(method, TARGET, body).code == "NoSuchBucket"
    for method in ("PUT", "DELETE"):
        assert reader.send(method, TARGET, body).code == "AccessDenied"
    assert s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"] == RULES


def test_a_bucket_with_its_own_origin_has_no_lifecycle(
    cluster: Cluster, keys: Keys, signer: Signer
) -> None:
    origin = cluster.call(
        "POST",
        f"/v1/origins?{keys.scope}",
        {"name": "o", "kind": "http", "config": {"url": "http://127.0.0.1:9"}},
    )
    made = {"name": "cached", "origin_id": origin["id"]}
    cluster.call("POST", f"/v1/buckets?{keys.scope}", made)
    answer = signer.send("PUT", "/cached?lifecycle=", document(ALL + DAY))
    assert (answer.status, answer.code) == (501, "NotImplemented")
    assert "origin of its own" in answer.text("Message")


def in_parts(s3: Any, bucket: str, key: str) -> Any:
    """Upload an object in one part; return the answer to its completion."""
    named = {"Bucket": bucket, "Key": key}
    named["UploadId"] = s3.create_multipart_upload(**named)["UploadId"]
    etag = s3.upload_part(**named, PartNumber=1, Body=b"x")["ETag"]
    parts = {"Parts": [{"PartNumber": 1, "ETag": etag}]}
    return s3.complete_multipart_upload(**named, MultipartUpload=parts)


def test_reads_and_uploads_say_when_an_object_expires(s3: Any, bucket: str) -> None:
    today = datetime.now(UTC).date()

    def expiry(days: int, rule_id: str) -> set[str]:
        # Midnight may come in the middle.
        moments = (today + timedelta(days + 1 + late) for late in (0, 1))
        return {
            f'expiry-date="{moment:%a, %d %b %Y} 00:00:00 GMT", rule-id="{rule_id}"'
            for moment in moments
        }

    ten = {"ID": "ten days ü", "Filter": {"Prefix": "a"}, "Status": "Enabled"}
    ten["Expiration"] = {"Days": 10}
    tagged = {"ID": "two", "Filter": {"Tag": {"Key": "a", "Value": "b"}}, "Status": "Enabled"}
    tagged["Expiration"] = {"Days": 2}
    put(s3, [ten, tagged])
    quoted = "ten%20days%20%C3%BC"
    assert "Expiration" not in s3.put_object(Bucket=bucket, Key="b", Body=b"x")
    assert s3.put_object(Bucket=bucket, Key="a", Body=b"x")["Expiration"] in expiry(10, quoted)
    for read in (s3.get_object, s3.head_object, s3.get_object):
        assert "Expiration" not in read(Bucket=bucket, Key="b")
        assert read(Bucket=bucket, Key="a")["Expiration"] in expiry(10, quoted)
    copied = s3.copy_object(Bucket=bucket, Key="a copy", CopySource=f"{bucket}/b")
    assert copied["Expiration"] in expiry(10, quoted)
    assert in_parts(s3, bucket, "a joined")["Expiration"] in expiry(10, quoted)
    tags = {"TagSet": [{"Key": "a", "Value": "b"}]}
    s3.put_object_tagging(Bucket=bucket, Key="a", Tagging=tags)
    for read in (s3.get_object, s3.head_object, s3.get_object):
        assert read(Bucket=bucket, Key="a")["Expiration"] in expiry(2, "two")
    tagged["Expiration"] = {"Days": 3}
    put(s3, [ten, tagged])
    for read in (s3.get_object, s3.head_object, s3.get_object):
        assert read(Bucket=bucket, Key="a")["Expiration"] in expiry(3, "two")
    # The rules do not delete a version that is overwritten.
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    first = s3.put_object(Bucket=bucket, Key="a", Body=b"1")["VersionId"]
    s3.put_object(Bucket=bucket, Key="a", Body=b"2")
    for read in (s3.get_object, s3.head_object):
        assert "Expiration" not in read(Bucket=bucket, Key="a", VersionId=first)
    s3.delete_bucket_lifecycle(Bucket=bucket)
    for read in (s3.get_object, s3.head_object):
        assert "Expiration" not in read(Bucket=bucket, Key="a")
