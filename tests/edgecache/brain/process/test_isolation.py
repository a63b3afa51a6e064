"""Two tenants at two brains with one port: no brain gives a tenant another one's data."""

import http.client
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import product
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.edgecache.cluster import Cluster, Keys
from tests.edgecache.conftest import connect
from tests.edgecache.new_cluster import new_cluster

pytestmark = pytest.mark.slow

BODIES = {"alice": b"alice's" * 100, "charlie": b"charlie's" * 100}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Return two brains with the same ports."""
    with new_cluster(tmp_path_factory, workers=0, brains=2) as made:
        yield made


@pytest.fixture
def connected(cluster: Cluster) -> Iterator[Callable[[Keys], list[Any]]]:
    """Return a function that connects a tenant's clients, two to each brain."""
    with ExitStack() as stack:

        def clients(keys: Keys) -> list[Any]:
            made = []
            for number in (0, 1, 0, 1):
                client = connect(keys, cluster.url, max_pool_connections=1)
                made.append(stack.enter_context(closing(client)))
                with cluster.only(number):
                    client.list_buckets()
            return made

        yield clients


def test_two_tenants_with_the_same_names_read_their_own_objects_from_every_brain(
    cluster: Cluster, connected: Callable[[Keys], list[Any]]
) -> None:
    tenants = {name: connected(cluster.tenant()) for name in BODIES}
    for name, clients in tenants.items():
        clients[0].create_bucket(Bucket="docs")
        clients[1].put_object(Bucket="docs", Key="k", Body=BODIES[name])
        clients[2].put_object(Bucket="docs", Key=f"of {name}", Body=b"x")
    # Each again, when both brains have it in memory.
    for _ in range(3):
        for number in range(4):
            for name, clients in tenants.items():
                read = clients[number].get_object(Bucket="docs", Key="k")
                assert read["Body"].read() == BODIES[name]
                listed = clients[number].list_objects_v2(Bucket="docs")["Contents"]
                assert [row["Key"] for row in listed] == ["k", f"of {name}"]

    for number, charlie in enumerate(tenants["charlie"]):
        charlie.delete_object(Bucket="docs", Key="k")
        with pytest.raises(ClientError):
            tenants["charlie"][number - 1].head_object(Bucket="docs", Key="k")
        for alice in tenants["alice"]:
            assert alice.get_object(Bucket="docs", Key="k")["Body"].read() == BODIES["alice"]
        charlie.put_object(Bucket="docs", Key="k", Body=BODIES["charlie"])


def test_every_brain_refuses_another_tenants_uploads_copies_and_deletes(
    cluster: Cluster, connected: Callable[[Keys], list[Any]]
) -> None:
    alice, charlie = connected(cluster.tenant()), connected(cluster.tenant())
    for clients in (alice, charlie):
        clients[0].create_bucket(Bucket="docs")
    alice[0].create_bucket(Bucket="secrets")
    alice[1].put_object(Bucket="secrets", Key="k", Body=BODIES["alice"])
    upload = alice[2].create_multipart_upload(Bucket="docs", Key="k")["UploadId"]
    part = {"Bucket": "docs", "Key": "k", "UploadId": upload}
    etag = alice[3].upload_part(**part, PartNumber=1, Body=b"x")["ETag"]
    parts = {"MultipartUpload": {"Parts": [{"PartNumber": 1, "ETag": etag}]}}

    attacks: tuple[Callable[[Any], Any], ...] = (
        lambda by: by.upload_part(**part, PartNumber=1, Body=b"y"),
        lambda by: by.list_parts(**part),
        lambda by: by.abort_multipart_upload(**part),
        lambda by: by.complete_multipart_upload(**part, **parts),
        lambda by: by.copy_object(Bucket="docs", Key="k", CopySource="secrets/k"),
        lambda by: by.get_object(Bucket="secrets", Key="k"),
        lambda by: by.delete_objects(Bucket="secrets", Delete={"Objects": [{"Key": "k"}]}),
    )
    for client, attack in product(charlie, attacks):
        with pytest.raises(ClientError) as refused:
            attack(client)
        status = refused.value.response["ResponseMetadata"]["HTTPStatusCode"]
        assert status == 404, refused.value
    alice[0].complete_multipart_upload(**part, **parts)
    for client in alice:
        assert client.get_object(Bucket="docs", Key="k")["Body"].read() == b"x"
        assert client.get_object(Bucket="secrets", Key="k")["Body"].read() == BODIES["alice"]


def test_every_brain_refuses_a_deleted_key_and_a_private_bucket_immediately(
    cluster: Cluster, connected: Callable[[Keys], list[Any]]
) -> None:
    keys = cluster.tenant()
    stolen = cluster.tenant(like=keys)
    clients, thieves = connected(keys), connected(stolen)
    clients[0].create_bucket(Bucket="docs")
    clients[0].put_object(Bucket="docs", Key="k", Body=BODIES["alice"])
    row = cluster.call("GET", f"/v1/buckets?{keys.scope}")["buckets"][0]
    path = f"/v1/buckets/{row['id']}?{keys.scope}"
    row = cluster.call("PATCH", path, {"is_public": True})
    with ExitStack() as stack:
        strangers = [
            stack.enter_context(closing(http.client.HTTPConnection("127.0.0.1", cluster.port)))
            for _ in range(4)
        ]

        def statuses() -> set[int]:
            found = set()
            for stranger in strangers:
                stranger.request("GET", f"/p/{row['public_name']}/k")
                answer = stranger.getresponse()
                found.add(answer.status)
                answer.read()
            return found

        for thief in thieves:
            assert thief.get_object(Bucket="docs", Key="k")["Body"].read() == BODIES["alice"]
        assert statuses() == {200}

        cluster.call("PATCH", path, {"is_public": False})
        assert statuses() <= {403, 404}
        cluster.call("DELETE", f"/v1/access-keys/{stolen.access_key}?{keys.scope}")
        for thief in thieves:
            with pytest.raises(ClientError) as refused:
                thief.get_object(Bucket="docs", Key="k")
            assert refused.value.response["Error"]["Code"] == "InvalidAccessKeyId"
    for client in clients:
        assert client.get_object(Bucket="docs", Key="k")["Body"].read() == BODIES["alice"]
