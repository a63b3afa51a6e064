"""The audit trail over the API: an organization's own events, with filters."""

import re
from datetime import timedelta
from typing import Any

import pytest

from accounts.models import User
from audit.models import AuditEvent
from audit.tags import sentences
from tests.cast import Answer, Caller, member, signed_in, with_proven_address


def happened(user: User, tag: str, **fields: Any) -> AuditEvent:
    """Record an event of a user's."""
    event: AuditEvent = AuditEvent.objects.create(
        tag=tag,
        organization_id=user.organization_id,
        actor_id=user.pk,
        actor=user.email,
        **fields,
    )
    return event


def tags(answer: Answer) -> list[str]:
    """Return the tags of a page."""
    assert answer.status == 200, answer.body
    return [event["tag"] for event in answer.body["results"]]


def test_an_admin_reads_what_happened_newest_first(alice: User) -> None:
    happened(alice, "api:one:create", data={"name": "x"}, environment_id="live")
    happened(alice, "api:two:create", address="192.0.2.7", agent="curl", outcome="refused")
    answer = signed_in(alice).get("/v1/audit")
    assert tags(answer) == ["api:two:create", "api:one:create"]
    two, one = answer.body["results"]
    assert one["data"] == {"name": "x"}
    assert (one["environment"], one["actor"]) == ("live", "alice@example.com")
    assert (two["address"], two["agent"], two["outcome"]) == ("192.0.2.7", "curl", "refused")


def test_an_event_says_in_a_sentence_what_happened(alice: User) -> None:
    happened(alice, "api:environment:create")
    happened(alice, "api:gone:long_ago")
    rows = signed_in(alice).get("/v1/audit").body["results"]
    assert [row["summary"] for row in rows] == ["", "An environment was created."]


def test_a_sentence_says_who_did_what_to_whom(alice: User, bob: User) -> None:
    caller = signed_in(with_proven_address(alice))
    path = f"/v1/members/{bob.pk}"
    for change in ({"roles": ["operator"]}, {"disabled": True}, {"labels": ["night"]}):
        assert caller.call("PATCH", path, change).status == 200
    assert caller.post("/v1/invitations", {"email": "new@example.com", "roles": ["admin"]}).status
    assert caller.call("DELETE", path).status == 200
    happened(alice, "api:bucket:create", data={})
    happened(alice, "api:session:create", outcome="refused")
    happened(alice, "api:email:release")
    for tag, actor in (("cli:member:create", "command"), ("sql:database:move", "platform")):
        data = {"member": str(bob.pk), "email": bob.email}
        AuditEvent.objects.create(
            tag=tag, organization_id=alice.organization_id, actor=actor, data=data
        )
    rows = caller.get("/v1/audit").body["results"][:10]
    assert [(row["sentence"], row["affected"]) for row in rows] == [
        ("A database was moved to another cluster.", "bob@example.com"),
        (
            "An operator of the platform created the member bob@example.com.",
            "bob@example.com",
        ),
        (
            "alice@example.com: " + sentences()["api:email:release"],
            "",
        ),
        ("alice@example.com was refused at a sign-in.", ""),
        # Without the name of the bucket.
        ("alice@example.com: A bucket was created.", ""),
        ("alice@example.com removed bob@example.com.", "bob@example.com"),
        ("alice@example.com invited new@example.com as admin.", "new@example.com"),
        ("alice@example.com changed the labels of bob@example.com.", "bob@example.com"),
        ("alice@example.com disabled bob@example.com.", "bob@example.com"),
        ("alice@example.com made bob@example.com an operator.", "bob@example.com"),
    ]


def test_every_tag_has_a_sentence_of_its_own_for_people(alice: User) -> None:
    # By a request, so that every app is loaded.
    assert signed_in(alice).get("/v1/audit").status == 200
    said = sentences()
    assert len(said) > 100
    assert len(set(said.values())) == len(said)
    for tag, sentence in said.items():
        assert re.fullmatch(r"[A-Z].{10,}[^.]\.", sentence), sentence
        # Its own words, not the tag's: "bucket_host", "reset_factors".
        assert not [part for part in tag.split(":") if "_" in part and part in sentence], sentence


def test_no_role_reads_another_organizations_trail(alice: User, charlie: User) -> None:
    about_charlie = {"member": str(charlie.pk), "email": charlie.email}
    happened(charlie, "api:secret:create", data=about_charlie)
    AuditEvent.objects.create(tag="cli:platform:own")
    assert tags(signed_in(alice).get("/v1/audit")) == []
    for name in ("actor", "affected", "search"):
        for text in (charlie.pk, charlie.email):
            assert tags(signed_in(alice).get(f"/v1/audit?{name}={text}")) == []


def test_operators_read_it_and_readers_do_not(alice: User, bob: User) -> None:
    operator = member(alice.organization, "o@example.com", role="operator")
    assert signed_in(operator).get("/v1/audit").status == 200
    assert signed_in(bob).get("/v1/audit").status == 403


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("tag=api:session", ["api:session:delete", "api:session:create"]),
        ("tag=api:session:create", ["api:session:create"]),
        ("tag=api:sess", []),
        ("outcome=refused", ["api:session:create"]),
        ("environment=sandbox", ["api:bucket:create"]),
        ("tag=API:Session", ["api:session:delete", "api:session:create"]),
        ("actor=BOB@example.com", ["api:bucket:create"]),
        ("actor=bob", ["api:bucket:create"]),
        ("actor=An operator of the platform", ["cli:member:update"]),
        ("actor=%25", []),
        ("affected=Erin@", ["cli:member:update"]),
        ("affected=alice", []),
        ("search=erin OPERATOR", ["cli:member:update"]),
        ("search=erin alice", []),
        # Words of the sentence, of a value, and of the tag.
        ("search=Bucket was created", ["api:bucket:create"]),
        ("search=photos", ["api:bucket:create"]),
        ("search=Session:Del", ["api:session:delete"]),
        ("search=req-1", ["api:session:delete"]),
        ("request_id=req-1", ["api:session:delete"]),
        ("tag=api:session&outcome=success", ["api:session:delete"]),
        ("tag=%25", []),
    ],
)
def test_filters_join(alice: User, bob: User, query: str, found: list[str]) -> None:
    happened(alice, "api:session:create", outcome="refused")
    happened(alice, "api:session:delete", request_id="req-1")
    happened(bob, "api:bucket:create", environment_id="sandbox", data={"bucket": "Photos"})
    about_erin = {"member": str(bob.pk), "email": "erin@example.com"}
    home = alice.organization_id
    AuditEvent.objects.create(tag="cli:member:update", organization_id=home, data=about_erin)
    assert tags(signed_in(alice).get(f"/v1/audit?{query}")) == found


def test_a_users_id_finds_what_it_did_and_what_was_done_to_it(alice: User, bob: User) -> None:
    happened(alice, "api:one:create", data={"member": str(bob.pk)})
    happened(bob, "api:two:create")
    caller = signed_in(alice)
    assert tags(caller.get(f"/v1/audit?actor={bob.pk}")) == ["api:two:create"]
    assert tags(caller.get(f"/v1/audit?affected={bob.pk}")) == ["api:one:create"]


def test_a_time_range_includes_its_beginning_and_excludes_its_end(alice: User) -> None:
    at = happened(alice, "api:one:create").at
    later = at + timedelta(seconds=1)

    def between(since: Any, until: Any) -> list[str]:
        span = f"since={since.isoformat()}&until={until.isoformat()}".replace("+", "%2B")
        return tags(signed_in(alice).get(f"/v1/audit?{span}"))

    assert between(at, later) == ["api:one:create"]
    assert between(later, later + timedelta(days=1)) == []
    assert between(at - timedelta(days=1), at) == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("since=yesterday", "since"),
        ("until=x", "until"),
        ("tags=api", "tags"),
        ("tag=", "tag"),
        ("since=2026-07-02T00:00Z&until=2026-07-01T00:00Z", "until"),
    ],
)
def test_an_unknown_filter_names_its_field(alice: User, query: str, field: str) -> None:
    answer = signed_in(alice).get(f"/v1/audit?{query}")
    assert (answer.status, answer.body["errors"][0]["field"]) == (400, field)


def test_pages_follow_one_another_without_gap_or_twin(alice: User) -> None:
    for number in range(7):
        happened(alice, f"api:n{number}:create")
    caller = signed_in(alice)
    first = caller.get("/v1/audit?page_size=4")
    happened(alice, "api:late:create")
    rest = caller.get(first.body["next"].replace("http://testserver", ""))
    assert tags(first) + tags(rest) == [f"api:n{number}:create" for number in range(6, -1, -1)]
    assert rest.body["next"] is None


def test_a_refused_permission_is_noted(alice: User, bob: User) -> None:
    assert signed_in(bob).post("/v1/environments", {"name": "x"}).status == 403
    event = AuditEvent.objects.get(tag="api:permission:deny")
    assert (event.outcome, event.actor_id) == ("denied", bob.pk)
    assert event.data == {
        "permission": "environments:create",
        "method": "POST",
        "route": "v1/environments",
    }
    assert event.organization_id == alice.organization_id


def test_a_caller_that_is_refused_in_a_loop_does_not_fill_the_trail(bob: User) -> None:
    caller = signed_in(bob)
    for _ in range(70):
        assert caller.get("/v1/audit").status == 403
    assert AuditEvent.objects.filter(tag="api:permission:deny").count() == 60


def test_a_request_without_a_valid_token_is_not_audited(db: None) -> None:
    assert Caller("nonsense").get("/v1/audit").status == 401
    assert not AuditEvent.objects.exists()
