"""The platform's endpoints with a real brain, real workers and an S3 client."""

import hashlib
import os
from dataclasses import replace
from typing import Any

import pytest
import requests
from botocore.exceptions import ClientError
from django.core.management import call_command
from pytest_django import Settings

from accounts.models import User
from billing import consumer_credits, tasks
from edgecache.tasks import close_environment
from environments import environments
from tests.cast import signed_in
from tests.edgecache.api.s3_clients import refused, s3
from tests.edgecache.brain.support import ClusterRows
from tests.edgecache.cluster import Cluster, until
from tests.edgecache.databases import own_files

# Too large to be in the memory of the brain that stored it.
LOST = os.urandom(3 * 2**20)

pytestmark = pytest.mark.usefixtures("over_a_brain")


def test_a_bucket_with_an_object_is_created_read_and_purged(alice: User) -> None:
    caller = signed_in(alice)
    assert caller.post("/v1/cache/buckets", {"name": "media"}).status == 201
    store = s3(caller)
    for number in range(3):
        store.put_object(Bucket="media", Key=f"a/{number}", Body=b"x" * 1000)
    preview = caller.post("/v1/cache/purge", {"prefix": "media/a/", "preview": True}).body
    done = caller.post("/v1/cache/purge", {"prefix": "media/a/", "keys": ["media/a/1"]}).body
    assert preview["objects_purged"] == done["objects_purged"] == 3
    assert caller.post("/v1/cache/purge", {"all": True}).body["objects_purged"] == 0
    # The origin keeps objects that were purged from the cache.
    assert store.get_object(Bucket="media", Key="a/1")["Body"].read() == b"x" * 1000
    store.close()


def test_environments_of_one_organization_are_isolated(alice: User) -> None:
    live, sandbox = signed_in(alice), signed_in(alice, "sandbox")
    live.post("/v1/cache/buckets", {"name": "media"})
    of_live, of_sandbox = s3(live), s3(sandbox)
    of_live.put_object(Bucket="media", Key="a", Body=b"live")
    assert sandbox.get("/v1/cache/buckets").body["results"] == []
    assert sandbox.get("/v1/cache/buckets/media").code == "bucket_not_found"
    assert refused(lambda: of_sandbox.get_object(Bucket="media", Key="a")) == "NoSuchBucket"
    assert sandbox.post("/v1/cache/purge", {"keys": ["media/a"]}).code == "bucket_not_found"
    # The name is free in the other environment.
    assert sandbox.post("/v1/cache/buckets", {"name": "media"}).status == 201
    of_live.close()
    of_sandbox.close()


def test_taken_names_used_origins_and_buckets_with_objects_are_conflicts(alice: User) -> None:
    caller = signed_in(alice)
    origin = {"name": "files", "kind": "http", "config": {"url": "https://origin.example.com/"}}
    assert caller.post("/v1/cache/origins", origin).status == 201
    made = caller.post("/v1/cache/buckets", {"name": "media", "origin": "files"})
    assert (made.status, made.body["origin"]) == (201, "files")
    assert caller.post("/v1/cache/buckets", {"name": "media"}).code == "bucket_taken"
    assert caller.post("/v1/cache/origins", origin).code == "origin_taken"
    assert caller.call("DELETE", "/v1/cache/origins/files").code == "origin_in_use"
    caller.post("/v1/cache/buckets", {"name": "full"})
    store = s3(caller)
    store.put_object(Bucket="full", Key="a", Body=b"x")
    store.close()
    assert caller.call("DELETE", "/v1/cache/buckets/full").code == "bucket_not_empty"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "x"}, "name"),
        ({"name": "Upper"}, "name"),
        ({"name": "media", "is_public": "perhaps"}, "is_public"),
    ],
)
def test_an_invalid_bucket_is_refused_with_its_field(
    alice: User, body: dict[str, Any], field: str
) -> None:
    answer = signed_in(alice).post("/v1/cache/buckets", body)
    assert (answer.status, answer.body["errors"][0]["field"]) == (400, field)


def test_an_invalid_origin_is_refused_with_its_field_and_without_its_secret(alice: User) -> None:
    caller = signed_in(alice)
    wanted = {
        "name": "files",
        "kind": "s3",
        "config": {"region": "eu-central-1"},
        "secret": {"access_key_id": "AKIDEXAMPLE", "secret_access_key": "never-to-be-seen"},
    }
    answer = caller.post("/v1/cache/origins", wanted)
    assert (answer.status, answer.body["errors"][0]["field"]) == (400, "config.bucket")
    config = {"bucket": "my-bucket", "region": "eu-central-1"}
    made = caller.post("/v1/cache/origins", wanted | {"config": config})
    assert (made.status, made.body["has_secret"]) == (201, True)
    shown = caller.get("/v1/cache/origins").raw.content + made.raw.content
    assert b"never-to-be-seen" not in shown


def test_an_unknown_origin_is_not_found(alice: User) -> None:
    answer = signed_in(alice).post("/v1/cache/buckets", {"name": "media", "origin": "none"})
    assert (answer.status, answer.code) == (404, "origin_not_found")


def test_a_revoked_key_is_refused(alice: User) -> None:
    caller = signed_in(alice)
    store = s3(caller)
    store.list_buckets()
    (key,) = caller.get("/v1/cache/access-keys").body["results"]
    assert "secret_access_key" not in key
    path = f"/v1/cache/access-keys/{key['access_key_id']}"
    assert caller.call("DELETE", path).status == 204
    assert refused(store.list_buckets) == "InvalidAccessKeyId"
    assert caller.call("DELETE", path).code == "access_key_not_found"
    store.close()


def test_a_node_is_registered_listed_and_removed(alice: User, bob: User) -> None:
    caller = signed_in(alice)
    before = caller.get("/v1/cache/status").body["total_nodes"]
    wanted = {"endpoint": "http://c1.example.com", "region": "us-east", "capacity_bytes": 2**30}
    made = caller.post("/v1/cache/nodes/register", wanted)
    assert (made.status, made.body["status"]) == (201, "pending")
    assert caller.post("/v1/cache/nodes/register", wanted).code == "endpoint_taken"
    assert caller.get("/v1/cache/status").body["total_nodes"] == before + 1
    path = f"/v1/cache/nodes/{made.body['node_id']}"
    assert made.body["node_secret"] not in str(caller.get(path).body)
    assert caller.get(f"{path}/metrics").body["total_hits"] == 0
    assert signed_in(bob).call("DELETE", path).status == 403
    assert caller.call("DELETE", path).status == 204
    assert caller.get("/v1/cache/status").body["total_nodes"] == before
    assert caller.get(path).code == "node_not_found"


def test_a_deleted_environment_is_disabled(alice: User) -> None:
    place = environments.create(alice.organization_id, "staging")
    caller = signed_in(alice, "staging")
    caller.post("/v1/cache/buckets", {"name": "media", "is_public": True})
    store = s3(caller)
    store.put_object(Bucket="media", Key="a", Body=b"x")
    close_environment(environment_pk=place.pk)
    assert refused(lambda: store.get_object(Bucket="media", Key="a")) == "InvalidAccessKeyId"
    assert caller.get("/v1/cache/buckets/media").body["is_public"] is False
    store.close()


@pytest.mark.slow
def test_reads_through_an_operators_node_are_charged_and_earn(
    alice: User, charlie: User, cluster: Cluster
) -> None:
    caller = signed_in(alice)
    caller.post("/v1/cache/buckets", {"name": "media", "is_public": True})
    store = s3(caller)
    store.put_object(Bucket="media", Key="a", Body=b"x" * 1000)
    rows = ClusterRows(cluster.database_url)
    until(lambda: rows.value("SELECT count(*) FROM brain_location") >= 1)
    # Both workers are Charlie's.
    rows.run("UPDATE brain_node SET organization_id = %s", charlie.organization_id)
    try:
        for _ in range(70):
            store.get_object(Bucket="media", Key="a")["Body"].read()
        words = {"reference": "invoice", "reason": "x", "actor": "x"}
        consumer_credits.top_up(alice.organization_id, 10**7, **words)
        call_command("settle", "--json")
        tasks.notify_brain(organization_id=alice.organization_id)
    finally:
        rows.run("UPDATE brain_node SET organization_id = NULL")
    store.close()
    (used,) = caller.get("/v1/usage").body["cache"]
    assert (used["bucket"], used["hits"], used["egress_bytes"]) == ("media", 70, 70_000)
    assert used["charged_ucr"] == 70 * 100 + 70_000 * 9
    lines = signed_in(charlie).get("/v1/cache/statement").body["lines"]
    assert {one["kind"] for one in lines} == {"hit", "egress"}
    earned = sum(one["amount_ucr"] for one in lines)
    assert signed_in(charlie).get("/v1/balance").body["held_ucr"] == earned > 0


@pytest.mark.slow
def test_without_credits_only_other_operators_nodes_stop_serving(
    alice: User, charlie: User, cluster: Cluster, settings: Settings
) -> None:
    settings.BILLING = replace(settings.BILLING, grace_days=0)
    caller = signed_in(alice)
    caller.post("/v1/cache/buckets", {"name": "media", "is_public": True})
    store = s3(caller)
    body = os.urandom(1000)
    for key, data in (("a", body), ("lost", LOST)):
        store.put_object(Bucket="media", Key=key, Body=data)
    rows = ClusterRows(cluster.database_url)
    digest = hashlib.sha256(LOST).digest()
    until(lambda: len(rows.holders(digest)) == 2)
    (own,) = own_files(cluster.database_url, cluster.folder / "brain", digest)
    rows.run("UPDATE brain_node SET organization_id = %s", charlie.organization_id)

    def read(key: str) -> bytes:
        content: bytes = store.get_object(Bucket="media", Key=key)["Body"].read()
        return content

    def is_refused() -> bool:
        try:
            read("lost")
        except ClientError as exc:
            return str(exc.response["Error"]["Code"]) == "AccountProblem"
        return False

    try:
        own.unlink()
        assert (read("a"), read("lost")) == (body, LOST)
        call_command("settle", "--json")
        tasks.notify_brain(organization_id=alice.organization_id)
        assert caller.get("/v1/balance").body["service"] == "stopped"
        # Once the brain knows the owners of these nodes.
        until(is_refused)
        # Objects that are available elsewhere stay readable, and can be changed.
        assert read("a") == body
        public_name = caller.get("/v1/cache/buckets/media").body["public_name"]
        plain = requests.get(f"{cluster.url}/p/{public_name}/lost", timeout=10)
        assert (plain.status_code, "no credits left" in plain.text) == (402, True)
        store.put_object(Bucket="media", Key="new", Body=b"new")
        assert read("new") == b"new"
        words = {"reference": "late", "reason": "x", "actor": "x"}
        consumer_credits.top_up(alice.organization_id, 10**9, **words)
        tasks.notify_brain(organization_id=alice.organization_id)
        assert read("lost") == LOST
    finally:
        rows.run("UPDATE brain_node SET organization_id = NULL")
    store.close()
