"""The cache's endpoints with a brain that is available, unavailable or disabled."""

from typing import Any

import pytest
from msgspec.structs import asdict

from accounts.models import User
from audit.models import AuditEvent
from edgecache.protocol.resources import BucketOptions
from environments import environments
from tests.cast import Caller, member, signed_in
from tests.edgecache.api.brain import METRICS, STATUS, ScriptedBrain

MINE = "01900000-0000-7000-8000-000000000001"
THEIRS = "01900000-0000-7000-8000-000000000002"


def node(node_id: str, organization_id: int | None) -> dict[str, Any]:
    """Return a node as the brain describes it."""
    return {
        "node_id": node_id,
        "organization_id": organization_id,
        "endpoint": "https://cache.example.com",
        "region": "eu-central",
        "capacity_bytes": 1000,
        "used_bytes": 10,
        "object_count": 1,
        "evictions": 0,
        "load": 0.25,
        "status": "active",
        "health": "online",
        "created_at": "2026-11-21T10:00:00+00:00",
        "last_seen_at": None,
    }


BUCKET: dict[str, Any] = {
    "public_name": "0123456789abcdef0123",
    "origin_prefix": "",
    "created_at": "2026-11-21T10:00:00+00:00",
    **asdict(BucketOptions()),
}
DAY: dict[str, Any] = {
    "day": "2026-11-22",
    "path": "direct",
    "is_recheck": False,
    "looks": 352,
    "right": 351,
    "wrong": 1,
    "missing": 0,
    "unanswered": 0,
    "bytes": 4100,
}
AUDITS = {"days": [DAY], "failures": []}


@pytest.fixture
def nodes(brain: ScriptedBrain, alice: User) -> ScriptedBrain:
    """Return a brain with a node of Alice's and one of another organization."""
    rows = [node(MINE, alice.organization_id), node(THEIRS, alice.organization_id + 1)]
    brain.say("GET /v1/nodes", 200, {"nodes": rows})
    for row in rows:
        brain.say(f"GET /v1/nodes/{row['node_id']}", 200, row)
        brain.say(f"DELETE /v1/nodes/{row['node_id']}", 204, None)
        said = METRICS | {"node_id": row["node_id"], "load": 0.25}
        brain.say(f"GET /v1/nodes/{row['node_id']}/metrics", 200, said)
        brain.say(f"GET /v1/nodes/{row['node_id']}/audits", 200, AUDITS)
    return brain


def test_status_has_the_published_fields(brain: ScriptedBrain, bob: User) -> None:
    answer = signed_in(bob).get("/v1/cache/status")
    assert (answer.status, answer.body) == (200, STATUS)
    assert "X-Cache-Disabled" not in answer.headers


def test_metrics_have_the_published_fields(brain: ScriptedBrain, bob: User) -> None:
    answer = signed_in(bob).get("/v1/cache/metrics")
    assert answer.status == 200
    assert answer.body == METRICS | {"collected_at": answer.body["collected_at"]}
    assert answer.body["collected_at"].startswith("2026-11-21T10:00:00")


def test_a_status_without_a_brain_is_503_with_the_status_fields(
    brain: ScriptedBrain, bob: User
) -> None:
    brain.close()
    answer = signed_in(bob).get("/v1/cache/status")
    assert (answer.status, answer.code) == (503, "cache_unavailable")
    assert int(answer.headers["Retry-After"]) >= 1
    assert answer.body["brain_healthy"] is False
    assert answer.body["total_nodes"] == 0


def test_the_rest_of_the_platform_works_without_a_brain(brain: ScriptedBrain, bob: User) -> None:
    brain.close()
    caller = signed_in(bob)
    assert caller.get("/v1/cache/metrics").status == 503
    assert caller.get("/v1/whoami").status == 200
    assert caller.get("/v1/environments").status == 200


def test_every_user_sees_every_node_and_only_owners_see_all_fields(
    nodes: ScriptedBrain, bob: User
) -> None:
    listed = {row["node_id"]: row for row in signed_in(bob).get("/v1/cache/nodes").body["nodes"]}
    assert listed[MINE]["is_own"]
    assert listed[MINE]["endpoint"] == "https://cache.example.com"
    assert not listed[THEIRS]["is_own"]
    assert listed[THEIRS].keys().isdisjoint({"endpoint", "load", "organization_id"})
    one = signed_in(bob).get(f"/v1/cache/nodes/{THEIRS}")
    assert one.status == 200
    assert "endpoint" not in one.body


def test_a_node_of_another_organization_can_be_neither_removed_nor_looked_into(
    nodes: ScriptedBrain, alice: User
) -> None:
    caller = signed_in(alice)
    for method, path in (("DELETE", ""), ("GET", "/metrics"), ("GET", "/audits")):
        answer = caller.call(method, f"/v1/cache/nodes/{THEIRS}{path}")
        assert (answer.status, answer.code) == (404, "node_not_found")
    assert not [call for call in nodes.calls if call.method == "DELETE"]
    assert caller.get(f"/v1/cache/nodes/{MINE}/metrics").body["node_id"] == MINE
    assert caller.get(f"/v1/cache/nodes/{MINE}/audits").body == AUDITS
    assert caller.call("DELETE", f"/v1/cache/nodes/{MINE}").status == 204


def test_an_invalid_id_never_reaches_the_brain(nodes: ScriptedBrain, alice: User) -> None:
    caller = signed_in(alice)
    for node_id in ["no-uuid", "..", "%2e%2e", "a%00b", "status%3Fx=1"]:
        assert caller.get(f"/v1/cache/nodes/{node_id}").status == 404
        assert nodes.calls == []


def test_registering_a_node_returns_its_secret_once_and_sends_the_organization(
    brain: ScriptedBrain, alice: User
) -> None:
    wanted = {"endpoint": "https://c.example.com", "region": "eu-central", "capacity_bytes": 10}
    made = node(MINE, alice.organization_id) | {
        "node_secret": "shown once",
        "brain_url": "https://brain.example.com",
    }
    brain.say("POST /v1/nodes", 201, made)
    answer = signed_in(alice).post("/v1/cache/nodes/register", wanted)
    assert answer.status == 201
    assert answer.body["node_secret"] == "shown once"
    assert answer.headers["Cache-Control"] == "no-store"
    sent = brain.last("POST").body
    assert sent == wanted | {
        "organization_id": alice.organization_id,
        "is_trusted": False,
        "created_by": alice.email,
        "creator_id": str(alice.pk),
    }
    event = AuditEvent.objects.get(tag="api:node:create")
    assert "shown once" not in str(event.data)


def test_a_wrong_registration_names_its_field(brain: ScriptedBrain, alice: User) -> None:
    caller = signed_in(alice)
    for field, value in [
        ("capacity_bytes", 0),
        ("capacity_bytes", -1),
        ("capacity_bytes", "much"),
        ("region", "Över"),
        ("region", ""),
        ("endpoint", None),
        ("unknown", 1),
    ]:
        wanted: dict[str, Any] = {
            "endpoint": "https://c.example.com",
            "region": "eu-central",
            "capacity_bytes": 10,
        }
        answer = caller.post("/v1/cache/nodes/register", wanted | {field: value})
        assert (answer.status, answer.code) == (400, "invalid_request")
        assert answer.body["errors"][0]["field"] == field
        assert brain.calls == []


def test_the_same_endpoint_twice_is_a_conflict(brain: ScriptedBrain, alice: User) -> None:
    brain.say("POST /v1/nodes", 409, {"code": "endpoint_taken"})
    wanted = {"endpoint": "https://c.example.com", "region": "eu-central", "capacity_bytes": 10}
    answer = signed_in(alice).post("/v1/cache/nodes/register", wanted)
    assert (answer.status, answer.code) == (409, "endpoint_taken")


def purged(brain: ScriptedBrain, caller: Caller, body: dict[str, Any]) -> dict[str, Any]:
    """Purge; return the body that the brain received."""
    counts = {"objects_purged": 3, "bytes_freed": 30, "nodes_affected": 2}
    brain.say("POST /v1/purge", 200, counts)
    answer = caller.post("/v1/cache/purge", body)
    assert (answer.status, answer.body) == (200, counts)
    asked: dict[str, Any] = brain.last("POST").body
    return asked


def test_a_purge_is_limited_to_the_caller_s_environment(brain: ScriptedBrain, alice: User) -> None:
    caller = signed_in(alice, "sandbox")
    wanted = {"prefix": "media/2026/", "keys": ["media/a b"], "tags": ["media/colour=blue"]}
    asked = purged(brain, caller, wanted)
    place = environments.find(alice.organization_id, "sandbox")
    assert asked == {
        "organization_id": alice.organization_id,
        "environment_pk": place.pk,
        **wanted,
    }


def test_empty_fields_count_as_absent(brain: ScriptedBrain, alice: User) -> None:
    asked = purged(brain, signed_in(alice), {"prefix": "", "keys": ["media/a"], "all": False})
    assert asked.keys() == {"organization_id", "environment_pk", "keys"}


def test_a_purge_without_a_selection_is_refused(brain: ScriptedBrain, alice: User) -> None:
    caller = signed_in(alice)
    for body in [
        {},
        {"prefix": ""},
        {"keys": []},
        {"tags": []},
        {"tags": [""]},
        {"tags": ["media/x"] * 101},
        {"tags": "media/x"},
        {"prefix": None},
        {"all": False, "preview": True},
    ]:
        answer = caller.post("/v1/cache/purge", body)
        assert (answer.status, answer.code) == (400, "invalid_request")
        assert brain.calls == []


def test_everything_is_purged_only_when_requested_explicitly(
    brain: ScriptedBrain, alice: User
) -> None:
    assert purged(brain, signed_in(alice), {"all": True})["all"] is True
    assert AuditEvent.objects.filter(tag="api:cache:purge").count() == 1


def test_a_preview_purges_nothing_and_writes_no_event(brain: ScriptedBrain, alice: User) -> None:
    assert purged(brain, signed_in(alice), {"all": True, "preview": True})["preview"] is True
    assert not AuditEvent.objects.filter(tag="api:cache:purge").exists()


def test_operators_may_purge_and_readers_may_not(
    brain: ScriptedBrain, alice: User, bob: User
) -> None:
    operator = member(alice.organization, "o@example.com", role="operator")
    purged(brain, signed_in(operator), {"keys": ["media/a"]})
    assert signed_in(bob).post("/v1/cache/purge", {"keys": ["media/a"]}).status == 403


CALLS: list[tuple[str, str, Any, int]] = [
    ("GET", "/v1/cache/status", None, 200),
    ("GET", "/v1/cache/nodes", None, 200),
    (
        "POST",
        "/v1/cache/nodes/register",
        {"endpoint": "https://c.example.com", "region": "eu-central", "capacity_bytes": 10},
        201,
    ),
    ("GET", f"/v1/cache/nodes/{MINE}", None, 200),
    ("DELETE", f"/v1/cache/nodes/{MINE}", None, 204),
    ("GET", f"/v1/cache/nodes/{MINE}/metrics", None, 200),
    ("GET", f"/v1/cache/nodes/{MINE}/audits", None, 200),
    ("GET", "/v1/cache/metrics", None, 200),
    ("POST", "/v1/cache/purge", {"all": True}, 200),
    ("GET", "/v1/cache/buckets", None, 200),
    ("POST", "/v1/cache/buckets", {"name": "media"}, 201),
    ("GET", "/v1/cache/buckets/media", None, 200),
    ("PATCH", "/v1/cache/buckets/media", {"is_public": True}, 200),
    ("DELETE", "/v1/cache/buckets/media", None, 204),
    ("GET", "/v1/cache/buckets/media/hosts", None, 200),
    ("POST", "/v1/cache/buckets/media/hosts", {"host": "files.example.com"}, 201),
    ("GET", "/v1/cache/buckets/media/hosts/files.example.com", None, 200),
    ("DELETE", "/v1/cache/buckets/media/hosts/files.example.com", None, 204),
    ("POST", "/v1/cache/buckets/media/signed-links", {"key": "a"}, 200),
    ("DELETE", "/v1/cache/buckets/media/signed-links", None, 204),
    ("GET", "/v1/cache/access-keys", None, 200),
    ("POST", "/v1/cache/access-keys", {"label": "app"}, 201),
    ("DELETE", "/v1/cache/access-keys/ZK1234", None, 204),
    ("GET", "/v1/cache/origins", None, 200),
    ("POST", "/v1/cache/origins", {"name": "files", "kind": "http"}, 201),
    ("PATCH", "/v1/cache/origins/files", {"secret": {"authorization": "x"}}, 200),
    ("DELETE", "/v1/cache/origins/files", None, 204),
    ("GET", "/v1/cache/metrics/history", None, 200),
]


def test_with_the_cache_disabled_every_call_succeeds_and_does_nothing(
    switched_off: None, alice: User
) -> None:
    caller = signed_in(alice)
    before = AuditEvent.objects.count()
    for method, path, body, status in CALLS:
        answer = caller.call(method, path, body)
        assert (answer.status, answer.headers["X-Cache-Disabled"]) == (status, "1"), answer.body
    assert AuditEvent.objects.count() == before


def test_with_the_cache_disabled_a_name_with_a_nul_is_not_found(
    switched_off: None, alice: User
) -> None:
    """The audit trail, which no brain's refusal comes before, cannot hold it."""
    caller = signed_in(alice)
    for method, path, body in [
        ("PATCH", "/v1/cache/origins/a%00b", {"secret": None}),
        ("DELETE", "/v1/cache/origins/a%00b", None),
        ("PATCH", "/v1/cache/buckets/a%00b", {"is_public": True}),
        ("DELETE", "/v1/cache/buckets/a%00b", None),
        ("DELETE", "/v1/cache/buckets/media/hosts/a%00b", None),
        ("DELETE", "/v1/cache/access-keys/a%00b", None),
    ]:
        answer = caller.call(method, path, body)
        assert (answer.status, answer.code) == (404, "not_found")


def test_with_the_cache_disabled_a_token_is_still_required(
    switched_off: None, anyone: Caller, db: None
) -> None:
    for method, path, body, _ in CALLS:
        assert anyone.call(method, path, body).status == 401


def test_a_limit_of_the_brain_is_a_conflict(brain: ScriptedBrain, alice: User) -> None:
    detail = "An environment has at most 1,000 access keys."
    brain.say("POST /v1/access-keys", 409, {"code": "cache_limit_reached", "detail": detail})
    answer = signed_in(alice).post("/v1/cache/access-keys", {"label": "one more"})
    assert (answer.status, answer.code) == (409, "cache_limit_reached")
    assert answer.body["detail"] == detail


def test_one_bucket_is_read_with_one_call(brain: ScriptedBrain, alice: User) -> None:
    bucket = BUCKET | {"id": 5, "name": "media", "origin_id": 7, "origin": "far"}
    brain.say("GET /v1/buckets/media", 200, bucket)

    said = signed_in(alice).get("/v1/cache/buckets/media")

    assert (said.status, said.body["origin"]) == (200, "far")
    assert [call.path for call in brain.calls] == ["/v1/buckets/media"]


def test_a_name_that_no_bucket_has_never_reaches_the_brain(
    brain: ScriptedBrain, alice: User
) -> None:
    for name in ("..", "Media", "a", "media%3Fx", "%20"):
        assert signed_in(alice).get(f"/v1/cache/buckets/{name}").status == 404
    assert brain.calls == []
