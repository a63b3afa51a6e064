"""Versions of objects: kept, read, restored and deleted by their ids, as AWS answers."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.edgecache.brain.s3.raw import Signer, send
from tests.edgecache.cluster import Cluster, Keys
from tests.edgecache.conftest import connect

UNKNOWN = "0" * 32


@pytest.fixture
def signer(cluster: Cluster, keys: Keys) -> Signer:
    """Return what signs raw requests of the tenant."""
    return Signer(keys, cluster.url)


def switch(s3: Any, status: str = "Enabled", bucket: str = "docs") -> None:
    """Set a bucket's versioning."""
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": status})


@pytest.fixture
def versioned(s3: Any, bucket: str) -> str:
    """Return a bucket that keeps versions."""
    switch(s3)
    return bucket


def put(s3: Any, body: bytes, key: str = "k", **options: Any) -> str:
    """Write an object; return its version id."""
    return str(s3.put_object(Bucket="docs", Key=key, Body=body, **options).get("VersionId"))


def get(s3: Any, version: str | None = None, key: str = "k") -> bytes:
    """Read an object, or one of its versions."""
    named = {} if version is None else {"VersionId": version}
    found = s3.get_object(Bucket="docs", Key=key, **named)
    if version is not None:
        assert found["VersionId"] == version
    body: bytes = found["Body"].read()
    return body


def delete(s3: Any, version: str | None = None, key: str = "k") -> dict[str, Any]:
    """Delete an object, or one of its versions; return what the answer says of versions."""
    named = {} if version is None else {"VersionId": version}
    answer = s3.delete_object(Bucket="docs", Key=key, **named)
    return {name: answer[name] for name in ("VersionId", "DeleteMarker") if name in answer}


def listed(s3: Any, **options: Any) -> list[tuple[str, str, bool, int | None]]:
    """Return the keys, ids, whether they are the latest, and sizes (None: a marker), in order."""
    found = s3.list_object_versions(Bucket="docs", **options)
    rows = [
        *((row, row["Size"]) for row in found.get("Versions", [])),
        *((row, None) for row in found.get("DeleteMarkers", [])),
    ]
    return [(row["Key"], row["VersionId"], row["IsLatest"], size) for row, size in rows]


def refused(work: Callable[[], Any]) -> tuple[int, str, dict[str, str]]:
    """Return the status, the code and the headers of a refusal."""
    with pytest.raises(ClientError) as error:
        work()
    response: Any = error.value.response
    metadata = response["ResponseMetadata"]
    return metadata["HTTPStatusCode"], response["Error"]["Code"], metadata["HTTPHeaders"]


# --- refusals ------------------------------------------------------------------------------------


def test_what_versioning_does_not_do_is_refused_by_name(
    signer: Signer, s3: Any, bucket: str
) -> None:
    root = "VersioningConfiguration"
    for inner, code in [
        ("<Status>Enabled</Status><MfaDelete>Enabled</MfaDelete>", "NotImplemented"),
        ("<Status>On</Status>", "MalformedXML"),
        ("", "IllegalVersioningConfigurationException"),
        ("<Status>Enabled</Status><Other/>", "MalformedXML"),
        ("<Status>Enabled</Status><Status>Suspended</Status>", "MalformedXML"),
    ]:
        body = f"<{root}>{inner}</{root}>".encode()
        answer = signer.send("PUT", "/docs?versioning", body)
        assert answer.code == code, inner
        if code == "NotImplemented":
            assert "MfaDelete" in answer.text("Message")
    assert "Status" not in s3.get_bucket_versioning(Bucket=bucket)
    mfa = {"x-amz-mfa": "serial 123456"}
    assert signer.send("DELETE", f"/docs/k?versionId={UNKNOWN}", b"", mfa).code == "NotImplemented"


def test_another_tenant_and_a_reading_key_get_no_version(
    cluster: Cluster, keys: Keys, s3: Any, versioned: str
) -> None:
    first = put(s3, b"one")
    put(s3, b"two")
    stranger = connect(cluster.tenant(), cluster.url)
    for call in (
        lambda: stranger.get_object(Bucket=versioned, Key="k", VersionId=first),
        lambda: stranger.delete_object(Bucket=versioned, Key="k", VersionId=first),
        lambda: stranger.list_object_versions(Bucket=versioned),
        lambda: switch(stranger, "Suspended"),
    ):
        assert refused(call)[1] == "NoSuchBucket"
    # A bucket of the same name, and the id of another tenant's version.
    stranger.create_bucket(Bucket=versioned)
    switch(stranger)
    stranger.put_object(Bucket=versioned, Key="k", Body=b"theirs")
    named = {"Bucket": versioned, "Key": "k", "VersionId": first}
    assert refused(lambda: stranger.get_object(**named))[1] == "NoSuchVersion"
    stranger.delete_object(**named)
    copy = {"Bucket": versioned, "Key": "copy", "CopySource": named}
    assert refused(lambda: stranger.copy_object(**copy))[1] == "NoSuchVersion"
    assert get(s3, first) == b"one"
    stranger.close()
    made = cluster.call("POST", f"/v1/access-keys?{keys.scope}", {"access": "read"})
    reading = Keys(
        keys.organization_id, keys.environment_pk, made["access_key_id"], made["secret_access_key"]
    )
    reader = connect(reading, cluster.url)
    assert get(reader, first) == b"one"
    for call in (
        lambda: reader.delete_object(Bucket=versioned, Key="k", VersionId=first),
        lambda: switch(reader, "Suspended"),
    ):
        assert refused(call)[1] == "AccessDenied"
    reader.close()


def test_the_public_reads_only_the_current_version(
    cluster: Cluster, keys: Keys, s3: Any, versioned: str
) -> None:
    row = cluster.call("GET", f"/v1/buckets?{keys.scope}")["buckets"][0]
    cluster.call("PATCH", f"/v1/buckets/{row['id']}?{keys.scope}", {"is_public": True})
    first = put(s3, b"one")
    put(s3, b"two")
    name = row["public_name"]
    for door in (f"/p/{name}/k", f"/{name}/k"):
        assert send(cluster.url, "GET", door).body == b"two"
    for version in (first, "null"):
        answer = send(cluster.url, "GET", f"/{name}/k?versionId={version}")
        assert (answer.status, answer.code) == (403, "AccessDenied")
    delete(s3)
    for door in (f"/p/{name}/k", f"/{name}/k"):
        assert send(cluster.url, "GET", door).status == 404


def test_a_bucket_with_an_origin_of_its_own_has_no_versions(
    cluster: Cluster, keys: Keys, s3: Any, signer: Signer
) -> None:
    config = {"name": "o", "kind": "http", "config": {"url": "http://127.0.0.1:9"}}
    origin = cluster.call("POST", f"/v1/origins?{keys.scope}", config)
    made = cluster.call(
        "POST", f"/v1/buckets?{keys.scope}", {"name": "docs", "origin_id": origin["id"]}
    )
    code, message = "NotImplemented", "an origin of its own"
    body = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
    answer = signer.send("PUT", "/docs?versioning", body)
    assert (answer.code, message in answer.text("Message")) == (code, True)
    assert made["versioning"] == "" == s3.get_bucket_versioning(Bucket="docs").get("Status", "")


def test_a_version_id_that_is_none_is_refused(s3: Any, versioned: str) -> None:
    put(s3, b"one")
    for version, expected in [("x", (400, "InvalidArgument")), (UNKNOWN, (404, "NoSuchVersion"))]:
        for read in (s3.get_object, s3.get_object_tagging, s3.get_object_acl):
            found = refused(partial(read, Bucket=versioned, Key="k", VersionId=version))
            assert found[:2] == expected
    # AWS deletes what is not there.
    assert delete(s3, UNKNOWN) == {"VersionId": UNKNOWN}
    assert refused(lambda: delete(s3, "x"))[:2] == (400, "InvalidArgument")
    assert get(s3) == b"one"


def test_a_bucket_without_versions_says_nothing_of_them(s3: Any, bucket: str) -> None:
    assert put(s3, b"one") == "None"
    assert "VersionId" not in s3.get_object(Bucket=bucket, Key="k")
    assert "VersionId" not in s3.head_object(Bucket=bucket, Key="k")
    assert delete(s3) == {}
    assert listed(s3) == []


# --- the model -----------------------------------------------------------------------------------


def test_an_overwritten_object_is_kept(s3: Any, bucket: str) -> None:
    put(s3, b"before")
    switch(s3)
    assert s3.get_bucket_versioning(Bucket=bucket)["Status"] == "Enabled"
    ids = [put(s3, body) for body in (b"one", b"second", b"3" * 20_000)]
    assert len({*ids}) == 3
    assert get(s3) == b"3" * 20_000
    bodies = dict(zip(ids, (b"one", b"second", b"3" * 20_000), strict=True)) | {"null": b"before"}
    for version, body in bodies.items():
        assert get(s3, version) == body
        head = s3.head_object(Bucket=bucket, Key="k", VersionId=version)
        assert (head["VersionId"], head["ContentLength"]) == (version, len(body))
        assert get_attributes(s3, version) == len(body)
    assert s3.get_object(Bucket=bucket, Key="k")["VersionId"] == ids[-1]
    assert [row[1:3] for row in listed(s3)] == [
        (ids[2], True),
        (ids[1], False),
        (ids[0], False),
        ("null", False),
    ]
    ranged = s3.get_object(Bucket=bucket, Key="k", VersionId=ids[1], Range="bytes=2-3")
    assert ranged["Body"].read() == b"co"


def get_attributes(s3: Any, version: str) -> int:
    """Return the size that GetObjectAttributes has."""
    found = s3.get_object_attributes(
        Bucket="docs", Key="k", VersionId=version, ObjectAttributes=["ObjectSize"]
    )
    assert found["VersionId"] == version
    return int(found["ObjectSize"])


def test_a_deleted_object_comes_back(s3: Any, versioned: str) -> None:
    first, second = put(s3, b"one"), put(s3, b"two")
    marker = delete(s3)
    assert marker["DeleteMarker"] is True
    of_marker = {"Bucket": versioned, "Key": "k", "VersionId": marker["VersionId"]}
    for read in (s3.get_object, s3.head_object):
        status, _, headers = refused(partial(read, Bucket=versioned, Key="k"))
        assert (status, headers["x-amz-delete-marker"]) == (404, "true")
        assert headers["x-amz-version-id"] == marker["VersionId"]
        status, _, headers = refused(partial(read, **of_marker))
        assert (status, headers["x-amz-delete-marker"]) == (405, "true")
        assert (headers["allow"], headers["x-amz-version-id"]) == ("DELETE", marker["VersionId"])
        assert "last-modified" in headers
    assert s3.list_objects_v2(Bucket=versioned)["KeyCount"] == 0
    assert get(s3, second) == b"two"
    assert listed(s3)[-1] == ("k", marker["VersionId"], True, None)
    # A second delete leaves a second marker, as AWS does.
    again = delete(s3)
    assert again["VersionId"] != marker["VersionId"]
    assert delete(s3, again["VersionId"]) == again
    assert refused(lambda: get(s3))[0] == 404
    assert delete(s3, marker["VersionId"]) == marker
    assert get(s3) == b"two"
    assert delete(s3, second) == {"VersionId": second}
    assert get(s3) == b"one"
    assert delete(s3, first) == {"VersionId": first}
    assert (listed(s3), refused(lambda: get(s3))[0]) == ([], 404)


def test_a_suspended_bucket_replaces_the_null_version(s3: Any, versioned: str) -> None:
    first = put(s3, b"one")
    switch(s3, "Suspended")
    assert s3.get_bucket_versioning(Bucket=versioned)["Status"] == "Suspended"
    for body in (b"two", b"three"):
        # AWS gives no id to what it does not keep.
        assert put(s3, body) == "None"
    assert get(s3, "null") == get(s3) == b"three"
    assert [row[1] for row in listed(s3)] == ["null", first]
    assert delete(s3) == {"VersionId": "null", "DeleteMarker": True}
    assert delete(s3) == {"VersionId": "null", "DeleteMarker": True}
    assert {row[1:] for row in listed(s3)} == {("null", True, None), (first, False, 3)}
    assert refused(lambda: get(s3, "null"))[:2] == (405, "MethodNotAllowed")
    switch(s3)
    fourth = put(s3, b"four")
    assert {row[1:] for row in listed(s3)} == {
        (fourth, True, 4),
        ("null", False, None),
        (first, False, 3),
    }
    switch(s3, "Suspended")
    # The null marker is not the newest, and is replaced all the same.
    assert put(s3, b"five") == "None"
    assert [row[1] for row in listed(s3)] == ["null", fourth, first]
    assert delete(s3, "null") == {"VersionId": "null"}
    assert get(s3) == b"four"


def test_a_marker_counts_as_absent_for_conditions(s3: Any, versioned: str) -> None:
    etag = s3.put_object(Bucket=versioned, Key="k", Body=b"one")["ETag"]
    assert refused(lambda: put(s3, b"x", IfNoneMatch="*"))[0] == 412
    delete(s3)
    assert refused(lambda: put(s3, b"x", IfMatch=etag))[0] == 404
    second = put(s3, b"two", IfNoneMatch=etag)
    wrong = {"Bucket": versioned, "Key": "k", "IfMatch": etag}
    assert refused(lambda: s3.delete_object(**wrong))[0] == 412
    assert s3.delete_object(**wrong | {"IfMatch": "*"})["DeleteMarker"] is True
    assert get(s3, second) == b"two"


def test_a_version_is_deleted_if_its_own_conditions_hold(s3: Any, versioned: str) -> None:
    first, second = put(s3, b"one"), put(s3, b"three")
    marker = delete(s3)["VersionId"]
    named = {"Bucket": versioned, "Key": "k"}
    heads = {each: s3.head_object(**named, VersionId=each) for each in (first, second)}
    etags = {each: head["ETag"] for each, head in heads.items()}
    time = heads[first]["LastModified"]
    for version, wrong in (
        (first, {"IfMatch": etags[second]}),
        (first, {"IfMatchSize": 5}),
        (first, {"IfMatchLastModifiedTime": time - timedelta(seconds=1)}),
        (first, {"IfMatch": etags[first], "IfMatchSize": 5}),
        (second, {"IfMatch": etags[first], "IfMatchLastModifiedTime": time}),
        (marker, {"IfMatch": "*"}),
        (marker, {"IfMatchSize": 0}),
    ):
        made = partial(s3.delete_object, **named, VersionId=version, **wrong)
        assert refused(made)[:2] == (412, "PreconditionFailed")
    assert {row[1] for row in listed(s3)} == {marker, second, first}
    right = {"IfMatch": etags[first], "IfMatchLastModifiedTime": time, "IfMatchSize": 3}
    for _ in range(2):
        # Absent, the second time.
        assert "DeleteMarker" not in s3.delete_object(**named, VersionId=first, **right)
    assert {row[1] for row in listed(s3)} == {marker, second}


def test_versions_of_a_list_are_deleted_by_their_own_conditions(s3: Any, versioned: str) -> None:
    first, second, third = (put(s3, body) for body in (b"1", b"22", b"333"))
    etag = s3.head_object(Bucket=versioned, Key="k", VersionId=first)["ETag"]
    rows = [
        {"Key": "k", "VersionId": first, "ETag": '"other"'},
        {"Key": "k", "VersionId": first, "ETag": etag, "Size": 1},
        {"Key": "k", "VersionId": second, "ETag": etag, "Size": 2},
        {"Key": "k", "VersionId": third, "Size": 3},
        {"Key": "k", "VersionId": second[:-4] + "0000", "Size": 3},
    ]
    answer = s3.delete_objects(Bucket=versioned, Delete={"Objects": rows})
    assert [row["VersionId"] for row in answer["Deleted"]] == [
        rows[i]["VersionId"] for i in (1, 3, 4)
    ]
    errors = {(row["VersionId"], row["Code"]) for row in answer["Errors"]}
    assert errors == {(each, "PreconditionFailed") for each in (first, second)}
    assert [row[1] for row in listed(s3)] == [second]
    assert get(s3) == b"22"


def test_no_condition_holds_for_a_marker_that_is_current(s3: Any, versioned: str) -> None:
    put(s3, b"")
    time = s3.head_object(Bucket=versioned, Key="k")["LastModified"]
    delete(s3)
    for wrong in (
        {"IfMatch": "*"},
        {"IfMatchSize": 0},
        {"IfMatchLastModifiedTime": time},
    ):
        made = partial(s3.delete_object, Bucket=versioned, Key="k", **wrong)
        assert refused(made)[:2] == (412, "PreconditionFailed")
    assert len(listed(s3)) == 2


def test_a_version_is_restored_by_a_copy(s3: Any, versioned: str) -> None:
    first = put(s3, b"one", Metadata={"m": "1"}, Tagging="a=b")
    put(s3, b"two")
    marker = delete(s3)["VersionId"]
    source = {"Bucket": versioned, "Key": "k"}
    target = {"Bucket": versioned, "Key": "k"}
    assert refused(lambda: s3.copy_object(**target, CopySource=source))[1] == "NoSuchKey"
    for version, code in [(marker, "InvalidRequest"), (UNKNOWN, "NoSuchVersion")]:
        named = source | {"VersionId": version}
        assert refused(partial(s3.copy_object, **target, CopySource=named))[1] == code
    copied = s3.copy_object(**target, CopySource=source | {"VersionId": first})
    assert copied["CopySourceVersionId"] == first
    assert copied["VersionId"] not in {first, marker}
    found = s3.get_object(**target)
    assert (found["Body"].read(), found["Metadata"], found["TagCount"]) == (b"one", {"m": "1"}, 1)
    assert found["VersionId"] == copied["VersionId"]
    assert len(listed(s3)) == 4
    upload = s3.create_multipart_upload(**target)["UploadId"]
    part = s3.upload_part_copy(
        **target, UploadId=upload, PartNumber=1, CopySource=source | {"VersionId": first}
    )
    assert part["CopySourceVersionId"] == first
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["CopyPartResult"]["ETag"]}]}
    done = s3.complete_multipart_upload(**target, UploadId=upload, MultipartUpload=parts)
    assert get(s3, done["VersionId"]) == b"one"
    assert len(listed(s3)) == 5


def test_each_version_has_its_own_tags(s3: Any, versioned: str) -> None:
    first, second = put(s3, b"one"), put(s3, b"two")
    for version, value in ((first, "1"), (second, "2")):
        named = {"Bucket": versioned, "Key": "k", "VersionId": version}
        tags = {"TagSet": [{"Key": "n", "Value": value}]}
        assert s3.put_object_tagging(**named, Tagging=tags)["VersionId"] == version
    for wanted, value in (({"VersionId": first}, "1"), ({"VersionId": second}, "2"), ({}, "2")):
        found = s3.get_object_tagging(Bucket=versioned, Key="k", **wanted)
        assert [row["Value"] for row in found["TagSet"]] == [value]
        assert found["VersionId"] == wanted.get("VersionId", second)
    assert s3.get_object(Bucket=versioned, Key="k")["TagCount"] == 1
    s3.delete_object_tagging(Bucket=versioned, Key="k", VersionId=first)
    assert s3.get_object_tagging(Bucket=versioned, Key="k", VersionId=first)["TagSet"] == []
    marker = delete(s3)["VersionId"]
    for version, status in ((marker, 405), (UNKNOWN, 404)):
        named = {"Bucket": versioned, "Key": "k", "VersionId": version}
        tagging = partial(s3.put_object_tagging, **named, Tagging={"TagSet": []})
        assert refused(tagging)[0] == status


def test_many_versions_are_deleted_by_one_request(s3: Any, versioned: str) -> None:
    first, second, other = put(s3, b"one"), put(s3, b"two"), put(s3, b"x", "other")
    wanted = [
        {"Key": "k", "VersionId": second},
        {"Key": "k", "VersionId": UNKNOWN},
        {"Key": "other"},
        {"Key": "k", "VersionId": "bad"},
        {"Key": "k", "VersionId": first, "ETag": "other"},
    ]
    answer = s3.delete_objects(Bucket=versioned, Delete={"Objects": wanted})
    found = {(row["Key"], row.get("VersionId")): row for row in answer["Deleted"]}
    assert set(found) == {("k", second), ("k", UNKNOWN), ("other", None)}
    assert found["other", None]["DeleteMarker"] is True
    marker = found["other", None]["DeleteMarkerVersionId"]
    errors = {row["VersionId"]: row["Code"] for row in answer["Errors"]}
    assert errors == {"bad": "NoSuchVersion", first: "PreconditionFailed"}
    assert get(s3) == b"one"
    named = [{"Key": "other", "VersionId": version} for version in (marker, other)]
    answer = s3.delete_objects(Bucket=versioned, Delete={"Objects": named})
    shown = {row["VersionId"]: row.get("DeleteMarkerVersionId") for row in answer["Deleted"]}
    assert shown == {marker: marker, other: None}
    assert [row[:2] for row in listed(s3)] == [("k", first)]


def test_a_bucket_with_versions_is_not_empty(s3: Any, versioned: str) -> None:
    put(s3, b"one")
    delete(s3)
    assert s3.list_objects_v2(Bucket=versioned)["KeyCount"] == 0
    assert refused(lambda: s3.delete_bucket(Bucket=versioned))[1] == "BucketNotEmpty"
    for _, version, _, _ in listed(s3):
        delete(s3, version)
    s3.delete_bucket(Bucket=versioned)


# --- listings ------------------------------------------------------------------------------------


def pages(s3: Any, then: Callable[[dict[str, Any]], Any] = lambda _: None, **options: Any) -> Any:
    """Return what all pages list: versions and markers, and groups. then: called between pages."""
    rows: list[tuple[str, str]] = []
    groups: list[str] = []
    marker: dict[str, str] = {}
    for _ in range(100):
        page = s3.list_object_versions(Bucket="docs", **options, **marker)
        found = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
        rows += [(row["Key"], row["VersionId"]) for row in found]
        groups += [row["Prefix"] for row in page.get("CommonPrefixes", [])]
        if not page["IsTruncated"]:
            return rows, groups
        assert len(found) + len(page.get("CommonPrefixes", [])) == options["MaxKeys"]
        marker = {
            f"{name}Marker": page[f"Next{name}Marker"]
            for name in ("Key", "VersionId")
            if f"Next{name}Marker" in page
        }
        then(page)
    raise AssertionError("the listing does not end")


@pytest.fixture
def shelf(s3: Any, versioned: str) -> list[tuple[str, str]]:
    """Return the versions of a bucket, in the order of listings."""
    keys = ["a", "b/1", "b/2", "b/2/x", "c d", "z"]
    rows: dict[str, list[str]] = {}
    for body in (b"1", b"22"):
        for key in keys:
            rows.setdefault(key, []).insert(0, put(s3, body, key))
    for key in ("a", "b/2"):
        rows[key].insert(0, delete(s3, key=key)["VersionId"])
    return [(key, version) for key in keys for version in rows[key]]


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_pages_list_every_version_once(s3: Any, shelf: list[tuple[str, str]], size: int) -> None:
    rows, groups = pages(s3, MaxKeys=size)
    assert (sorted(rows), groups) == (sorted(shelf), [])
    below, _ = pages(s3, MaxKeys=size, Prefix="b/2")
    assert sorted(below) == sorted(row for row in shelf if row[0].startswith("b/2"))
    top, groups = pages(s3, MaxKeys=size, Delimiter="/")
    assert groups == ["b/"]
    assert sorted(top) == sorted(row for row in shelf if "/" not in row[0])


def test_a_listing_is_in_order_with_markers_among_the_versions(
    signer: Signer, shelf: list[tuple[str, str]]
) -> None:
    answer = signer.send("GET", "/docs?versions&encoding-type=url").body.decode()
    ids = [part.partition("<")[0] for part in answer.split("<VersionId>")[1:]]
    assert ids == [version for _, version in shelf]
    assert "<Key>c%20d</Key>" in answer
    latest = [part.partition("<")[0] for part in answer.split("<IsLatest>")[1:]]
    newest = dict(reversed(shelf))
    assert latest == ["true" if newest[key] == version else "false" for key, version in shelf]


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_listing_goes_on_when_its_page_is_deleted(
    s3: Any, shelf: list[tuple[str, str]], size: int
) -> None:
    def remove(page: dict[str, Any]) -> None:
        found = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
        named = [{"Key": row["Key"], "VersionId": row["VersionId"]} for row in found]
        s3.delete_objects(Bucket="docs", Delete={"Objects": named})

    rows, _ = pages(s3, remove, MaxKeys=size)
    assert sorted(rows) == sorted(shelf)


def test_the_null_version_is_passed_even_if_it_is_deleted(s3: Any, bucket: str) -> None:
    put(s3, b"old")
    switch(s3)
    first = put(s3, b"one")
    switch(s3, "Suspended")
    put(s3, b"null")
    page = s3.list_object_versions(Bucket=bucket, MaxKeys=1)
    assert page["Versions"][0]["VersionId"] == "null"
    delete(s3, "null")
    markers = {
        "KeyMarker": page["NextKeyMarker"],
        "VersionIdMarker": page["NextVersionIdMarker"],
    }
    assert [row[1] for row in listed(s3, **markers)] == [first]
    for marker in (first, "null"):
        assert listed(s3, KeyMarker="k", VersionIdMarker=marker) == []
    assert refused(lambda: listed(s3, KeyMarker="k", VersionIdMarker="x"))[0] == 400
