"""The internal API: its secret, limits, refusals and tenant isolation."""

import secrets
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import asdict

from edgecache.protocol.resources import BucketOptions
from tests.edgecache.brain.support import ClusterRows, Internal, ask, register
from tests.edgecache.cluster import Cluster

ALICE_ID, CHARLIE_ID = secrets.randbits(40), secrets.randbits(40)
ALICE = f"organization_id={ALICE_ID}&environment_pk=11"
CHARLIE = f"organization_id={CHARLIE_ID}&environment_pk=21"
STATUS = {
    "brain_healthy",
    "total_nodes",
    "online_nodes",
    "total_cache_bytes",
    "used_cache_bytes",
    "hit_ratio",
}
METRICS = {
    "total_hits",
    "total_misses",
    "hit_ratio",
    "bytes_served",
    "bytes_stored",
    "bytes_capacity",
    "object_count",
    "evictions",
    "active_nodes",
    "avg_latency_ms",
    "p95_latency_ms",
    "p99_latency_ms",
    "collected_at",
}
# A value of each option other than its default.
OTHER_OPTIONS: dict[str, Any] = {
    name: {bool: not default, int: 1, str: "x", tuple: ["x-device"]}[type(default)]
    for name, default in asdict(BucketOptions()).items()
} | {"versioning": "Enabled"}


@pytest.fixture
def call(bare_cluster: Cluster) -> Iterator[Internal]:
    """Return the internal API of a brain; the tenants' data is deleted afterwards."""
    internal = Internal(bare_cluster)
    yield internal
    for organization_id, environment_pk in ((ALICE_ID, 11), (CHARLIE_ID, 21)):
        internal("DELETE", f"/v1/environments/{organization_id}/{environment_pk}")


def test_every_path_except_health_requires_the_secret(call: Internal) -> None:
    for given in ["", "wrong", "x" * 43, "ключ", "\t"]:
        for path in ("/v1/status", "/v1/nodes", "/v1/usage", "/v1/buckets"):
            said = ask(call.url + path, bearer=given.encode().decode("latin-1"))
            assert (said.status, said.code) == (401, "not_authenticated")
        assert ask(call.url + "/health").status == 200


def test_another_authorization_scheme_is_refused(bare_cluster: Cluster) -> None:
    head = (
        f"GET /v1/status HTTP/1.1\r\nhost: x\r\nauthorization: Basic {bare_cluster.secret}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", bare_cluster.internal_port)) as connection:
        connection.sendall(head.encode())
        answer = connection.recv(1000)
    assert answer.startswith(b"HTTP/1.1 401")
    assert b"www-authenticate: Bearer" in answer


def test_the_previous_secret_is_still_accepted(start: Callable[..., Cluster]) -> None:
    old = "the previous secret of the platform is long enough"
    present = "n" * 48
    brain = start(secret=present, variables={"ZCACHE_BRAIN_SECRET": f"{present},{old}"})
    for accepted in (present, old):
        url = f"http://127.0.0.1:{brain.internal_port}/v1/status"
        assert ask(url, bearer=accepted).status == 200


def test_the_body_of_a_caller_without_the_secret_is_not_read(bare_cluster: Cluster) -> None:
    head = b"POST /v1/purge HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n"
    with socket.create_connection(
        ("127.0.0.1", bare_cluster.internal_port), timeout=5
    ) as connection:
        connection.sendall(head)
        assert connection.recv(100).startswith(b"HTTP/1.1 401")


def test_a_body_that_is_not_a_json_object_is_malformed(call: Internal) -> None:
    for raw in [b"{", b"[]", b"7", b'"x"', b"\xff"]:
        said = ask(call.url + "/v1/purge", "POST", raw=raw, bearer=call.secret)
        assert (said.status, said.code) == (400, "malformed")


def test_a_body_over_the_limit_is_refused(call: Internal) -> None:
    said = ask(call.url + "/v1/nodes", "POST", raw=b"x" * (2**20 + 1), bearer=call.secret)
    assert (said.status, said.code) == (413, "too_large")


def test_unknown_paths_and_methods_are_refused(call: Internal) -> None:
    assert call("GET", "/v1/nothing").status == 404
    assert call("GET", "/v1/nodes/").status == 404
    said = call("PUT", "/v1/nodes")
    assert (said.status, said.code) == (405, "method_not_allowed")


def test_status_and_metrics_have_exactly_the_published_fields(call: Internal) -> None:
    assert set(call("GET", "/v1/status").body) == STATUS
    assert set(call("GET", "/v1/metrics").body) == METRICS


def test_a_node_is_registered_once_per_endpoint(call: Internal) -> None:
    wanted = {"endpoint": "http://127.0.0.1:9101", "region": "eu-central", "capacity_bytes": 7}
    made = call("POST", "/v1/nodes", wanted | {"organization_id": 3})

    assert made.status == 201
    assert made.body["status"] == "pending"
    assert made.body["endpoint"] == "http://127.0.0.1:9101"
    assert len(made.body["node_secret"]) >= 32
    assert made.body["brain_url"].startswith("http://127.0.0.1:")

    again = call("POST", "/v1/nodes", wanted | {"endpoint": "http://127.0.0.1:9101/"})
    assert (again.status, again.code) == (409, "endpoint_taken")


def test_the_credential_of_a_node_is_shown_once_and_kept_as_a_hash(
    call: Internal, bare_cluster: Cluster
) -> None:
    node = register(bare_cluster)
    shown = str(call("GET", "/v1/nodes").body) + str(call("GET", f"/v1/nodes/{node.id}").body)
    kept = ClusterRows(bare_cluster.database_url).all("SELECT * FROM brain_node")

    assert "secret" not in shown
    assert node.secret not in shown + str(kept) + bare_cluster.log


def test_a_refused_registration_names_the_wrong_field(call: Internal) -> None:
    cases: list[tuple[dict[str, Any], set[str]]] = [
        ({"endpoint": "nowhere"}, {"endpoint"}),
        ({"region": "EU Central"}, {"region"}),
        ({"region": 7}, {"region"}),
        ({"capacity_bytes": 0}, {"capacity_bytes"}),
        ({"capacity_bytes": 1.5}, {"capacity_bytes"}),
        ({"capacity_bytes": True}, {"capacity_bytes"}),
        ({"capacity_bytes": 2**70}, {"capacity_bytes"}),
        ({"organization_id": "3"}, {"organization_id"}),
        ({"organization_id": -3}, {"organization_id"}),
        ({"is_trusted": 1}, {"is_trusted"}),
        ({"capacity": 7}, {"capacity"}),
        ({"endpoint": None}, {"endpoint"}),
    ]
    for changes, fields in cases:
        wanted = {"endpoint": "http://127.0.0.1:9101", "region": "eu-central", "capacity_bytes": 7}
        said = call("POST", "/v1/nodes", wanted | changes)
        assert (said.status, said.code, said.fields) == (400, "invalid", fields)


def test_an_unknown_node_is_not_found(call: Internal) -> None:
    for name in ["x", "0", "01a1fd0d-ab7e-72c5-8fa0-53cf16294094", "%00", "%2E%2E", "%20"]:
        for method, path in (
            ("GET", ""),
            ("DELETE", ""),
            ("GET", "/metrics"),
            ("POST", "/approve"),
            ("POST", "/drain"),
            ("POST", "/quarantine"),
        ):
            said = call(method, f"/v1/nodes/{name}{path}")
            assert (said.status, said.code) == (404, "node_not_found")


def test_a_nodes_metrics_have_the_clusters_fields_and_its_load(
    call: Internal, bare_cluster: Cluster
) -> None:
    node = register(bare_cluster)
    node.beat(used_bytes=5, object_count=2, evictions=1, load=0.5)

    said = call("GET", f"/v1/nodes/{node.id}/metrics").body

    assert set(said) == METRICS | {"node_id", "load"}
    assert (said["bytes_stored"], said["object_count"], said["evictions"]) == (5, 2, 1)
    assert (said["load"], said["active_nodes"]) == (0.5, 1)


def test_status_counts_registered_and_online_nodes(call: Internal, bare_cluster: Cluster) -> None:
    first, second = register(bare_cluster, port=9101), register(bare_cluster, port=9102)
    first.beat(used_bytes=100)

    said = call("GET", "/v1/status").body
    assert (said["total_nodes"], said["online_nodes"]) == (2, 1)
    assert (said["total_cache_bytes"], said["used_cache_bytes"]) == (2**30, 100)

    call("DELETE", f"/v1/nodes/{second.id}")
    call("DELETE", f"/v1/nodes/{first.id}")
    assert call("GET", "/v1/status").body["total_nodes"] == 0


def test_the_endpoint_of_a_removed_node_may_be_registered_again(
    call: Internal, bare_cluster: Cluster
) -> None:
    node = register(bare_cluster)
    assert call("DELETE", f"/v1/nodes/{node.id}").status == 204
    assert register(bare_cluster).id != node.id


def test_only_a_verified_node_can_be_approved(call: Internal, bare_cluster: Cluster) -> None:
    node = register(bare_cluster, organization_id=3, is_trusted=False)
    said = call("POST", f"/v1/nodes/{node.id}/approve")
    assert (said.status, said.code) == (409, "not_possible")


def test_an_impossible_decision_is_refused_and_a_repeated_one_accepted(
    call: Internal, bare_cluster: Cluster
) -> None:
    node = register(bare_cluster, organization_id=3, is_trusted=False)
    assert call("POST", f"/v1/nodes/{node.id}/drain").code == "not_possible"
    assert call("POST", f"/v1/nodes/{node.id}/quarantine").body["status"] == "quarantined"
    assert call("POST", f"/v1/nodes/{node.id}/quarantine").status == 200


def test_a_decision_is_visible_in_the_next_response(call: Internal, bare_cluster: Cluster) -> None:
    node = register(bare_cluster)
    node.beat()
    for decision, status in (
        ("drain", "draining"),
        ("approve", "active"),
        ("quarantine", "quarantined"),
        ("approve", "active"),
    ):
        assert call("POST", f"/v1/nodes/{node.id}/{decision}").body["status"] == status
        assert call("GET", f"/v1/nodes/{node.id}").body["status"] == status


def test_a_bucket_belongs_to_one_environment(call: Internal) -> None:
    made = call("POST", f"/v1/buckets?{ALICE}", {"name": "docs", "is_public": True})
    assert made.status == 201
    number = made.body["id"]

    assert [row["id"] for row in call("GET", f"/v1/buckets?{ALICE}").body["buckets"]] == [number]
    assert call("GET", f"/v1/buckets?{CHARLIE}").body["buckets"] == []
    for method, name, body in (
        ("GET", "docs", None),
        ("PATCH", number, {"is_public": False}),
        ("DELETE", number, None),
    ):
        said = call(method, f"/v1/buckets/{name}?{CHARLIE}", body)
        assert (said.status, said.code) == (404, "bucket_not_found")
    assert call("GET", f"/v1/buckets/docs?{ALICE}").body["is_public"] is True


def test_a_name_that_no_bucket_has_is_not_found(call: Internal) -> None:
    for name in ("other", "%00", "a", "1", "%2E%2E", "docs%2Fhosts"):
        said = call("GET", f"/v1/buckets/{name}?{ALICE}")
        assert (said.status, said.code) == (404, "bucket_not_found")


def test_every_option_of_a_bucket_is_set_at_its_creation_and_changed(call: Internal) -> None:
    options = OTHER_OPTIONS | {"log_bucket": "logs"}
    assert call("POST", f"/v1/buckets?{ALICE}", {"name": "logs"}).status == 201
    made = call("POST", f"/v1/buckets?{ALICE}", {"name": "docs"} | options).body
    assert made | options == made
    path = f"/v1/buckets/{made['id']}?{ALICE}"
    # Backwards: a website's index document goes after what needs it.
    for name, default in reversed(asdict(BucketOptions()).items()):
        wanted = list(default) if isinstance(default, tuple) else default
        # Versions are suspended, and never forgotten.
        wanted = "Suspended" if name == "versioning" else wanted
        changed = call("PATCH", path, {name: wanted}).body
        made |= {name: wanted}
        assert changed == made == call("GET", f"/v1/buckets/docs?{ALICE}").body


def test_versions_are_not_forgotten_and_never_of_another_origin(call: Internal) -> None:
    made = call("POST", f"/v1/buckets?{ALICE}", {"name": "docs", "versioning": "Enabled"}).body
    body = {"name": "o", "kind": "http", "config": {"url": "http://127.0.0.1:9"}}
    origin = call("POST", f"/v1/origins?{ALICE}", body).body["id"]
    given = {"name": "pulled", "origin_id": origin}
    pulled = call("POST", f"/v1/buckets?{ALICE}", given).body
    for said in (
        call("PATCH", f"/v1/buckets/{made['id']}?{ALICE}", {"versioning": ""}),
        call("PATCH", f"/v1/buckets/{made['id']}?{ALICE}", {"versioning": "On"}),
        call("PATCH", f"/v1/buckets/{pulled['id']}?{ALICE}", {"versioning": "Enabled"}),
        call("POST", f"/v1/buckets?{ALICE}", given | {"name": "new", "versioning": "Suspended"}),
    ):
        assert (said.status, said.fields) == (400, {"versioning"})
    assert call("GET", f"/v1/buckets/docs?{ALICE}").body["versioning"] == "Enabled"


def test_buckets_are_created_changed_and_deleted(call: Internal) -> None:
    number = call("POST", f"/v1/buckets?{ALICE}", {"name": "docs"}).body["id"]
    path = f"/v1/buckets/{number}?{ALICE}"

    assert call("POST", f"/v1/buckets?{ALICE}", {"name": "docs"}).code == "bucket_taken"
    changed = call("PATCH", path, {"verifies_reads": True}).body
    assert (changed["verifies_reads"], changed["allows_redirect"]) == (True, False)
    assert call("PATCH", path, {"name": "other"}).fields == {"name"}
    assert call("DELETE", path).status == 204
    assert call("DELETE", path).code == "bucket_not_found"


def test_a_wrong_bucket_is_refused_with_its_fields(call: Internal) -> None:
    for body, fields in [
        ({}, {"name"}),
        ({"name": "A"}, {"name"}),
        ({"name": "docs", "is_public": "yes"}, {"is_public"}),
        ({"name": "docs", "origin_id": "x"}, {"origin_id"}),
        ({"name": "docs", "origin_prefix": 7}, {"origin_prefix"}),
        ({"name": "docs", "sequence": 7}, {"sequence"}),
    ]:
        said = call("POST", f"/v1/buckets?{ALICE}", body)
        assert (said.status, said.fields) == (400, fields)


@pytest.mark.parametrize("query", ["", "organization_id=1", "organization_id=x&environment_pk=1"])
def test_a_call_without_a_valid_tenant_is_refused(call: Internal, query: str) -> None:
    for path in ("/v1/buckets", "/v1/access-keys", "/v1/origins"):
        assert call("GET", f"{path}?{query}").status == 400


def test_an_origin_of_another_environment_cannot_be_used(call: Internal) -> None:
    origin = {"name": "web", "kind": "http", "config": {"url": "http://127.0.0.1:9/"}}
    made = call("POST", f"/v1/origins?{ALICE}", origin)
    assert made.status == 201, made
    number = made.body["id"]

    said = call("POST", f"/v1/buckets?{CHARLIE}", {"name": "docs", "origin_id": number})
    assert said.code == "origin_not_found"
    assert call("DELETE", f"/v1/origins/{number}?{CHARLIE}").code == "origin_not_found"
    stolen = {"secret": {"authorization": "x"}}
    assert call("PATCH", f"/v1/origins/{number}?{CHARLIE}", stolen).code == "origin_not_found"
    assert not call("GET", f"/v1/origins?{ALICE}").body["origins"][0]["has_secret"]
    assert call("GET", f"/v1/origins?{CHARLIE}").body["origins"] == []
    assert call("POST", f"/v1/buckets?{ALICE}", {"name": "docs", "origin_id": number}).status == 201
    assert call("DELETE", f"/v1/origins/{number}?{ALICE}").code == "origin_in_use"


def test_the_secret_of_an_access_key_is_shown_once(call: Internal, bare_cluster: Cluster) -> None:
    made = call("POST", f"/v1/access-keys?{ALICE}", {"label": "ci"}).body
    secret, number = made["secret_access_key"], made["access_key_id"]

    listed = call("GET", f"/v1/access-keys?{ALICE}").body["access_keys"]
    kept = str(ClusterRows(bare_cluster.database_url).all("SELECT * FROM brain_accesskey"))

    assert [row["access_key_id"] for row in listed] == [number]
    assert secret not in str(listed) + kept + bare_cluster.log
    assert call("GET", f"/v1/access-keys?{CHARLIE}").body["access_keys"] == []
    said = call("DELETE", f"/v1/access-keys/{number}?{CHARLIE}")
    assert (said.status, said.code) == (404, "access_key_not_found")
    assert call("DELETE", f"/v1/access-keys/{number}?{ALICE}").status == 204


def test_the_access_of_a_key_is_validated(call: Internal) -> None:
    said = call("POST", f"/v1/access-keys?{ALICE}", {"access": "admin"})
    assert said.fields == {"access"}
    assert call("POST", f"/v1/access-keys?{ALICE}", {"access": "read"}).body["access"] == "read"


def test_a_purge_without_a_selection_is_refused(call: Internal) -> None:
    bodies: list[dict[str, Any]] = [
        {},
        {"keys": []},
        {"keys": [""], "prefix": ""},
        {"all": False},
    ]
    for body in bodies:
        said = call(
            "POST", "/v1/purge", {"organization_id": ALICE_ID, "environment_pk": 11, **body}
        )
        assert (said.status, said.fields) == (400, {"keys"})


def test_a_purge_of_absent_objects_counts_nothing(call: Internal) -> None:
    said = call(
        "POST", "/v1/purge", {"organization_id": ALICE_ID, "environment_pk": 11, "all": True}
    )
    assert said.body == {"objects_purged": 0, "bytes_freed": 0, "nodes_affected": 0}


def test_usage_is_empty_at_first(call: Internal) -> None:
    sums = dict.fromkeys(("hits", "misses", "bytes_served", "storage_byte_hours"), "0")
    nothing = {"lines": [], "sums": sums, "next": 0}
    assert call("GET", "/v1/usage").body == nothing
    assert call("GET", "/v1/usage?after=0&limit=5").body == nothing
    assert call("GET", "/v1/usage?after=-1").fields == {"after"}


def test_warming_an_absent_object_reports_it(call: Internal) -> None:
    said = call(
        "POST", "/v1/warm", {"organization_id": ALICE_ID, "environment_pk": 11, "keys": ["docs/a"]}
    )
    assert said.body == {"warmed": 0, "failed": [{"key": "docs/a", "code": "no_such_bucket"}]}


def test_dropping_an_environment_deletes_all_its_data(call: Internal) -> None:
    call("POST", f"/v1/buckets?{ALICE}", {"name": "docs"})
    call("POST", f"/v1/buckets?{CHARLIE}", {"name": "docs"})
    call("POST", f"/v1/access-keys?{ALICE}", {})

    assert call("DELETE", f"/v1/environments/{ALICE_ID}/11").status == 204
    assert call("DELETE", f"/v1/environments/{ALICE_ID}/11").status == 204

    assert call("GET", f"/v1/buckets?{ALICE}").body["buckets"] == []
    assert call("GET", f"/v1/access-keys?{ALICE}").body["access_keys"] == []
    assert len(call("GET", f"/v1/buckets?{CHARLIE}").body["buckets"]) == 1
    assert call("DELETE", "/v1/environments/1/x").status == 400


def test_prometheus_may_read_metrics_from_loopback_but_not_through_a_proxy(
    bare_cluster: Cluster,
) -> None:
    port = bare_cluster.internal_port

    def get(extra: str) -> bytes:
        with socket.create_connection(("127.0.0.1", port)) as connection:
            head = f"GET /metrics HTTP/1.1\r\nhost: x\r\n{extra}connection: close\r\n\r\n"
            connection.sendall(head.encode())
            return b"".join(iter(lambda: connection.recv(65536), b""))

    said = get("")
    assert said.startswith(b"HTTP/1.1 200")
    assert b'\nzonal_cache_hits_total{brain="' in said
    assert b'",le="+Inf"} ' in said
    assert get("x-forwarded-for: 203.0.113.9\r\n").startswith(b"HTTP/1.1 401")
    assert get(f"x-forwarded-for: x\r\nauthorization: Bearer {bare_cluster.secret}\r\n").startswith(
        b"HTTP/1.1 200"
    )
