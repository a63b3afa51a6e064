"""Listings: prefix, delimiter, pages, encoding; both versions, and versions of objects."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.edgecache.brain.s3.raw import Signer
from tests.edgecache.cluster import Cluster, Keys

NAMES = ["a/1", "a/2", "a/b/3", "b", "c/4", "c/5", "d e", "z"]


@pytest.fixture
def filled(s3: Any, bucket: str) -> str:
    """Return a bucket with some objects."""
    for name in NAMES:
        s3.put_object(Bucket=bucket, Key=name, Body=name.encode())
    return bucket


def names(answer: Any) -> list[str]:
    """Return the keys of a page."""
    return [row["Key"] for row in answer.get("Contents", [])]


def groups(answer: Any) -> list[str]:
    """Return the groups of a page."""
    return [row["Prefix"] for row in answer.get("CommonPrefixes", [])]


def test_keys_are_listed_in_the_order_of_their_bytes(s3: Any, filled: str) -> None:
    answer = s3.list_objects_v2(Bucket=filled, FetchOwner=True)
    assert names(answer) == NAMES
    assert (answer["KeyCount"], answer["MaxKeys"], answer["IsTruncated"]) == (8, 1000, False)
    row = answer["Contents"][0]
    assert (row["Size"], row["StorageClass"]) == (3, "STANDARD")
    assert len(row["Owner"]["ID"]) == 64
    assert row["ETag"] == s3.head_object(Bucket=filled, Key="a/1")["ETag"]


def test_a_listing_has_a_prefix_and_a_delimiter(s3: Any, filled: str) -> None:
    top = s3.list_objects_v2(Bucket=filled, Delimiter="/")
    assert (names(top), groups(top), top["KeyCount"]) == (["b", "d e", "z"], ["a/", "c/"], 5)
    below = s3.list_objects_v2(Bucket=filled, Delimiter="/", Prefix="a/")
    assert (names(below), groups(below)) == (["a/1", "a/2"], ["a/b/"])
    assert names(s3.list_objects_v2(Bucket=filled, Prefix="nothing")) == []
    other = s3.list_objects_v2(Bucket=filled, Delimiter=" ")
    assert groups(other) == ["d "]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8])
def test_pages_join_without_gap_or_overlap(s3: Any, filled: str, size: int) -> None:
    for operation in ("list_objects_v2", "list_objects"):
        paginator = s3.get_paginator(operation)
        options = {"PaginationConfig": {"PageSize": size}}
        pages = list(paginator.paginate(Bucket=filled, **options))
        assert [name for page in pages for name in names(page)] == NAMES
        pages = list(paginator.paginate(Bucket=filled, Delimiter="/", **options))
        assert [name for page in pages for name in names(page)] == ["b", "d e", "z"]
        assert [name for page in pages for name in groups(page)] == ["a/", "c/"]


def test_a_listing_may_be_limited_to_zero_keys(s3: Any, filled: str) -> None:
    answer = s3.list_objects_v2(Bucket=filled, MaxKeys=0)
    assert (names(answer), answer["IsTruncated"], answer["MaxKeys"]) == ([], False, 0)


def test_a_listing_starts_after_a_key_or_marker(s3: Any, filled: str) -> None:
    assert names(s3.list_objects_v2(Bucket=filled, StartAfter="b")) == ["c/4", "c/5", "d e", "z"]
    assert names(s3.list_objects(Bucket=filled, Marker="bb")) == ["c/4", "c/5", "d e", "z"]


def test_an_empty_continuation_token_is_the_beginning(s3: Any, filled: str) -> None:
    answer = s3.list_objects_v2(Bucket=filled, ContinuationToken="", MaxKeys=1)
    assert (names(answer), answer["ContinuationToken"]) == (NAMES[:1], "")


def test_a_bad_parameter_is_refused(cluster: Cluster, keys: Keys, filled: str) -> None:
    for query in [
        "list-type=2&max-keys=-1",
        "list-type=2&max-keys=many",
        "list-type=2&encoding-type=rot13",
        "list-type=2&continuation-token=%21%21",
        "versions=&version-id-marker=null",
    ]:
        answer = Signer(keys, cluster.url).send("GET", f"/{filled}?{query}")
        assert (answer.status, answer.code) == (400, "InvalidArgument")


def test_names_are_encoded_on_request(cluster: Cluster, keys: Keys, filled: str) -> None:
    signer = Signer(keys, cluster.url)
    plain = signer.send("GET", f"/{filled}?list-type=2&prefix=d")
    assert (plain.text("Key"), plain.text("EncodingType")) == ("d e", "")
    coded = signer.send("GET", f"/{filled}?encoding-type=url&list-type=2&prefix=d%20")
    assert (coded.text("Key"), coded.text("Prefix")) == ("d%20e", "d%20")


def test_a_page_has_at_most_a_thousand_keys(cluster: Cluster, keys: Keys, filled: str) -> None:
    answer = Signer(keys, cluster.url).send("GET", f"/{filled}?list-type=2&max-keys=99999")
    assert answer.text("MaxKeys") == "1000"


def test_each_object_has_the_null_version(s3: Any, filled: str) -> None:
    first = s3.list_object_versions(Bucket=filled, MaxKeys=5)
    assert [row["Key"] for row in first["Versions"]] == NAMES[:5]
    assert all(row["VersionId"] == "null" and row["IsLatest"] for row in first["Versions"])
    assert (first["NextKeyMarker"], first["NextVersionIdMarker"]) == (NAMES[4], "null")
    pages = s3.get_paginator("list_object_versions").paginate(
        Bucket=filled, PaginationConfig={"PageSize": 3}
    )
    assert [row["Key"] for page in pages for row in page["Versions"]] == NAMES


def test_a_deleted_object_is_not_listed(s3: Any, filled: str) -> None:
    s3.delete_objects(Bucket=filled, Delete={"Objects": [{"Key": name} for name in NAMES[:7]]})
    assert names(s3.list_objects_v2(Bucket=filled)) == ["z"]
    with pytest.raises(ClientError):
        s3.get_object(Bucket=filled, Key="b")
