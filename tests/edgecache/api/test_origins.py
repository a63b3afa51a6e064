"""Credentials of origins: replaced while buckets read through them, and never shown."""

from collections.abc import Iterator
from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from accounts.models import Session, User
from audit.models import AuditEvent
from tests.accounts.api_keys.support import holder
from tests.cast import Caller, signed_in
from tests.edgecache.brain.cdn.conftest import Origin, OriginAnswer
from tests.edgecache.brain.s3 import raw
from tests.edgecache.cluster import Cluster, until
from tests.parallel import at_once
from tests.twofactor.holder import with_totp

pytestmark = pytest.mark.usefixtures("over_a_brain")
PATH = "/v1/cache/origins/web"
OLD, NEW = "Bearer the-old-one", "Bearer the-new-one"


@pytest.fixture
def web() -> Iterator[Origin]:
    """Return an origin whose responses must not be stored."""
    server = Origin()
    server.said["/a"] = OriginAnswer(200, {"Cache-Control": "no-store"})
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def owner(alice: User, web: Origin) -> Caller:
    """Return Alice; her bucket reads through the origin with the old credentials."""
    caller = signed_in(alice)
    body = {"name": "web", "kind": "http", "config": {"url": web.url}}
    made = caller.post("/v1/cache/origins", body | {"secret": {"authorization": OLD}})
    assert (made.status, made.body["has_secret"]) == (201, True)
    bucket = {"name": "site", "origin": "web", "is_public": True}
    assert caller.post("/v1/cache/buckets", bucket).status == 201
    return caller


def sent_by(owner: Caller, cluster: Cluster, web: Origin) -> str | None:
    """Return the credentials that a read of the bucket's sends to the origin."""
    name = owner.get("/v1/cache/buckets/site").body["public_name"]
    assert raw.send(cluster.url, "GET", f"/p/{name}/a").status == 200
    return web.asked[-1].headers.get("authorization")


def test_credentials_are_replaced_while_a_bucket_uses_them(
    owner: Caller, cluster: Cluster, web: Origin, alice: User
) -> None:
    assert sent_by(owner, cluster, web) == OLD
    answer = owner.call("PATCH", PATH, {"secret": {"authorization": NEW}})
    assert (answer.status, answer.body["has_secret"]) == (200, True)
    assert answer.body["config"] == {"url": web.url}
    assert sent_by(owner, cluster, web) == NEW
    assert owner.call("PATCH", PATH, {"secret": None}).body["has_secret"] is False
    assert sent_by(owner, cluster, web) is None
    for shown in (answer.body, owner.get("/v1/cache/origins").body):
        assert "the-" not in str(shown)
    events = AuditEvent.objects.filter(tag="api:origin:update").order_by("pk")
    assert [event.data for event in events] == [
        {"origin": "web", "has_secret": True},
        {"origin": "web", "has_secret": False},
    ]
    assert {event.organization_id for event in events} == {alice.organization_id}


@pytest.mark.django_db(transaction=True)
def test_one_of_concurrent_replacements_counts_and_none_is_shown(
    owner: Caller, cluster: Cluster, web: Origin, caplog: pytest.LogCaptureFixture
) -> None:
    secrets = [f"Bearer the-new-one-{number}" for number in range(4)]
    actions = [
        partial(owner.call, "PATCH", PATH, {"secret": {"authorization": s}}) for s in secrets
    ]
    answers = at_once(*actions)
    assert {answer.status for answer in answers} == {200}
    assert sent_by(owner, cluster, web) in secrets
    said = [str(answer.body) for answer in answers] + [caplog.text, cluster.log]
    said += [str(event.data) for event in AuditEvent.objects.all()]
    assert [text for text in said if "the-new-one" in text or OLD in text] == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "secret"),
        ({"secret": {"access_key_id": "x"}}, "secret.access_key_id"),
        ({"secret": {"authorization": "two\nlines"}}, "secret.authorization"),
        ({"secret": None, "config": {"url": "https://elsewhere.example/"}}, "config"),
    ],
)
def test_wrong_credentials_change_nothing(
    owner: Caller, cluster: Cluster, web: Origin, body: dict[str, object], field: str
) -> None:
    answer = owner.call("PATCH", PATH, body)
    assert answer.status == 400
    assert field in {error["field"] for error in answer.body["errors"]}
    assert sent_by(owner, cluster, web) == OLD


def test_only_an_admin_with_a_recent_proof_creates_an_origin(
    alice: User, bob: User, charlie: User
) -> None:
    body = {"name": "web", "kind": "http", "config": {"url": "https://files.example.com/"}}
    owner = signed_in(alice)
    Session.objects.update(auth_time=timezone.now() - timedelta(hours=1))
    for wanted in (body, body | {"secret": {"authorization": NEW}}):
        assert owner.post("/v1/cache/origins", wanted).code == "step_up_required"
        assert signed_in(bob).post("/v1/cache/origins", wanted).code == "permission_denied"
    assert owner.get("/v1/cache/origins").body["results"] == []
    assert signed_in(alice).post("/v1/cache/origins", body).status == 201
    assert signed_in(charlie).get("/v1/cache/origins").body["results"] == []


def test_a_second_factor_is_what_counts_where_there_is_one(alice: User) -> None:
    with_totp(alice)
    body = {"name": "web", "kind": "http", "config": {"url": "https://files.example.com/"}}
    refused = signed_in(alice).post("/v1/cache/origins", body)
    assert (refused.code, refused.body["proof"]) == ("step_up_required", "second_factor")


def test_an_api_key_creates_an_origin_but_replaces_no_credentials(alice: User) -> None:
    body = {"name": "web", "kind": "http", "config": {"url": "https://files.example.com/"}}
    writes, reads = (holder(alice, scopes=[f"buckets:{each}"]) for each in ("write", "read"))
    assert reads.post("/v1/cache/origins", body).code == "permission_denied"
    assert writes.post("/v1/cache/origins", body).status == 201
    change = {"secret": {"authorization": NEW}}
    assert writes.call("PATCH", PATH, change).code == "api_key_forbidden"


def test_only_an_admin_of_the_organization_with_a_recent_proof_replaces_them(
    owner: Caller, cluster: Cluster, web: Origin, bob: User, charlie: User
) -> None:
    body = {"secret": {"authorization": NEW}}
    assert signed_in(bob).call("PATCH", PATH, body).code == "permission_denied"
    assert signed_in(charlie).call("PATCH", PATH, body).code == "origin_not_found"
    Session.objects.update(auth_time=timezone.now() - timedelta(hours=1))
    assert owner.call("PATCH", PATH, body).code == "step_up_required"
    assert sent_by(owner, cluster, web) == OLD


def test_options_change_without_the_credentials(
    owner: Caller, cluster: Cluster, web: Origin
) -> None:
    answer = owner.call("PATCH", PATH, {"host": "www.example.org", "idle_timeout_s": 0})
    assert (answer.status, answer.body["host"], answer.body["idle_timeout_s"]) == (
        200,
        "www.example.org",
        0,
    )
    assert sent_by(owner, cluster, web) == OLD
    assert web.asked[-1].headers["host"] == "www.example.org"
    for wrong in ({"connect_timeout_s": 61}, {"connections": -1}, {"host": "a b"}, {"timeout": 1}):
        assert owner.call("PATCH", PATH, wrong).status == 400
    (event,) = AuditEvent.objects.filter(tag="api:origin:update")
    assert event.data["host"] == "www.example.org"


@pytest.mark.django_db(transaction=True)
def test_options_are_not_taken_back_by_a_page_that_was_read_before(
    owner: Caller, cluster: Cluster, web: Origin, charlie: User
) -> None:
    read = owner.get(PATH)
    assert (read.status, read.body) == (200, owner.get("/v1/cache/origins").body["results"][0])
    # Credentials are no part of the version.
    assert owner.call("PATCH", PATH, {"secret": {"authorization": NEW}}).status == 200
    version = {"IF_MATCH": read.headers["ETag"]}
    changed = owner.call("PATCH", PATH, {"host": "www.example.org"}, **version)
    assert changed.status == 200

    late = owner.call("PATCH", PATH, {"connections": 4, "host": ""}, **version)

    assert (late.status, late.code) == (409, "changed_since_read")
    assert [(each["field"], each["message"]) for each in late.body["errors"]] == [
        ("host", 'It is now "www.example.org".')
    ]
    present = owner.get(PATH)
    assert (present.body, present.headers["ETag"]) == (changed.body, changed.headers["ETag"])
    assert sent_by(owner, cluster, web) == NEW
    # Of changes of one version at once, one is made.
    version = {"IF_MATCH": present.headers["ETag"]}
    bodies = [{"connections": 4}, {"idle_timeout_s": 0}, {"first_byte_timeout_s": 9}]
    answers = at_once(*(partial(owner.call, "PATCH", PATH, body, **version) for body in bodies))
    assert sorted(each.status for each in answers) == [200, 409, 409]
    assert signed_in(charlie).get(PATH).code == "origin_not_found"


def test_the_owner_of_a_bucket_sees_why_its_responses_failed(
    owner: Caller, cluster: Cluster, web: Origin, charlie: User
) -> None:
    path = "/v1/cache/buckets/site/failures"
    web.said["/a"] = OriginAnswer(200, {"Content-Length": "x"}, b"")
    name = owner.get("/v1/cache/buckets/site").body["public_name"]
    assert raw.send(cluster.url, "GET", f"/p/{name}/a").status == 502
    until(lambda: bool(owner.get(path).body["results"]))
    (row,) = owner.get(path).body["results"]
    assert (row["cause"], row["count"]) == ("length-unclear", 1)
    assert row["meaning"] == "The origin's answer does not say where its body ends."
    assert signed_in(charlie).get(path).code == "bucket_not_found"
