"""Every change of what a page shows takes the version that was read: ETag and If-Match."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from accounts.models import User
from tests.cast import Answer, Caller, member, signed_in
from tests.conformance import document
from tests.parallel import at_once

pytestmark = pytest.mark.django_db

PLAIN: dict[str, Any] = {"url": "https://example.com/hook", "events": ["member.added"]}


def as_it_is(path: str) -> Callable[[Caller, User], str]:
    """Return a function that finds a path without ids."""
    return lambda admin, other: path


def of_member(admin: Caller, other: User) -> str:
    return f"/v1/members/{other.pk}"


def of_webhook(admin: Caller, other: User) -> str:
    return f"/v1/webhooks/{admin.post('/v1/webhooks', PLAIN).body['id']}"


def of_query(admin: Caller, other: User) -> str:
    saved = admin.post("/v1/sql/queries", {"name": "Orders", "query": "SELECT 1"})
    return f"/v1/sql/queries/{saved.body['id']}"


@dataclass(frozen=True)
class Resource:
    """What can be read and changed. first, second: changes of different fields, or of the only one.

    changed: the fields that the first one changes, as errors name them.
    """

    operation: str
    find: Callable[[Caller, User], str]
    first: dict[str, Any]
    second: dict[str, Any]
    changed: tuple[str, ...]

    @property
    def method(self) -> str:
        """Of the change."""
        return self.operation.partition(" ")[0]


RESOURCES = [
    Resource(
        "PUT /v1/auth/2fa/policy",
        as_it_is("/v1/auth/2fa/policy"),
        {"recovery_questions": True},
        {"grace_period_days": 14},
        ("recovery_questions",),
    ),
    Resource(
        "PATCH /v1/members/{user_id}",
        of_member,
        {"roles": ["operator"]},
        {"labels": ["billing"]},
        ("roles",),
    ),
    Resource(
        "PATCH /v1/webhooks/{webhook_id}",
        of_webhook,
        {"state": "disabled"},
        {"description": "the second"},
        ("state",),
    ),
    Resource(
        "PATCH /v1/environments/{environment_id}",
        as_it_is("/v1/environments/live"),
        {"name": "Main"},
        {"name": "Production"},
        ("name",),
    ),
    Resource(
        "PATCH /v1/organization",
        as_it_is("/v1/organization"),
        {"name": "Lakes"},
        {"name": "Rivers"},
        ("name",),
    ),
    Resource(
        "PATCH /v1/sql/queries/{query_id}",
        of_query,
        {"version": 1, "query": "SELECT 2"},
        {"name": "All orders"},
        ("query", "version"),
    ),
    Resource(
        "PUT /v1/balance/spend-cap",
        as_it_is("/v1/balance/spend-cap"),
        {"cap_cents": 500},
        {"cap_cents": 900},
        ("cap_cents",),
    ),
]
# They take a brain: tests/edgecache/api/test_versions.py and test_origins.py.
ELSEWHERE = {
    "PATCH /v1/cache/buckets/{bucket_name}",
    "PATCH /v1/cache/origins/{origin_name}",
}
EACH = pytest.mark.parametrize("resource", RESOURCES, ids=lambda each: each.operation)
POLICY = "/v1/auth/2fa/policy"


@pytest.fixture
def admin(alice: User) -> Caller:
    """Return Alice."""
    return signed_in(alice)


@pytest.fixture
def other(alice: User) -> User:
    """Return a reader."""
    return member(alice.organization, "other@example.com", role="reader")


def change(admin: Caller, resource: Resource, path: str, body: Any, version: str) -> Answer:
    return admin.call(resource.method, path, body, IF_MATCH=version)


def test_each_operation_that_takes_a_version_is_tried_here() -> None:
    declared = {
        f"{method.upper()} {path}"
        for path, methods in document()["paths"].items()
        for method, operation in methods.items()
        if any(each["name"] == "If-Match" for each in operation.get("parameters", ()))
    }
    assert declared == {each.operation for each in RESOURCES} | ELSEWHERE


@EACH
def test_a_change_of_an_older_version_is_refused_and_told_what_changed(
    admin: Caller, other: User, resource: Resource
) -> None:
    path = resource.find(admin, other)
    read = admin.get(path).headers["ETag"]
    first = admin.call(resource.method, path, resource.first)
    assert first.status == 200, first.body

    late = change(admin, resource, path, resource.second, read)

    assert (late.status, late.code) == (409, "changed_since_read")
    assert tuple(each["field"] for each in late.body["errors"]) == resource.changed
    present = admin.get(path)
    for name in resource.changed:
        assert present.body[name] == first.body[name]
    assert present.headers["ETag"] == first.headers["ETag"] != read

    again = change(admin, resource, path, resource.second, present.headers["ETag"])
    assert again.status == 200, again.body
    expected = {**resource.first, **resource.second}
    expected.pop("version", None)
    assert {name: again.body[name] for name in expected} == expected


@EACH
def test_any_version_and_one_of_several_match(
    admin: Caller, other: User, resource: Resource
) -> None:
    path = resource.find(admin, other)
    read = admin.get(path).headers["ETag"]
    assert read.startswith('"')
    assert change(admin, resource, path, resource.first, f'"other", {read}').status == 200
    assert change(admin, resource, path, resource.second, "*").status == 200


@pytest.mark.parametrize(
    ("given", "status", "code"),
    [
        ('"unknown"', 409, "changed_since_read"),
        ('""', 409, "changed_since_read"),
        ('W/"weak"', 400, "weak"),
        ("unquoted", 400, "malformed"),
        ('"open', 400, "malformed"),
        ('"two" "without a comma"', 400, "malformed"),
        ('*, "a"', 400, "malformed"),
        ("", 400, "malformed"),
    ],
)
def test_a_version_that_cannot_match_is_refused_and_changes_nothing(
    admin: Caller, given: str, status: int, code: str
) -> None:
    answer = admin.call("PUT", POLICY, {"grace_period_days": 14}, IF_MATCH=given)
    assert answer.status == status
    codes = [each["code"] for each in answer.body.get("errors", ())] or [answer.code]
    assert codes == [code]
    assert admin.get(POLICY).body["grace_period_days"] == 7


@pytest.mark.django_db(transaction=True)
@EACH
def test_of_two_changes_of_one_version_at_once_the_second_is_refused(
    admin: Caller, other: User, resource: Resource
) -> None:
    path = resource.find(admin, other)
    read = admin.get(path).headers["ETag"]
    bodies = [resource.first, resource.second]
    answers = at_once(*(partial(change, admin, resource, path, body, read) for body in bodies))
    assert sorted(each.status for each in answers) == [200, 409]


def test_a_change_that_compares_no_versions_refuses_the_header(admin: Caller, other: User) -> None:
    path = f"/v1/members/{other.pk}"
    version = admin.get(path).headers["ETag"]
    answer = admin.call("DELETE", path, IF_MATCH=version)
    (wrong,) = answer.body["errors"]
    assert (answer.status, wrong["field"], wrong["code"]) == (400, "If-Match", "unknown")
    assert User.objects.filter(pk=other.pk).exists()


@pytest.mark.parametrize(
    ("method", "path", "body", "header"),
    [
        ("POST", "/v1/webhooks", PLAIN, "If-Match"),
        ("POST", "/v1/webhooks", PLAIN, "If-None-Match"),
        ("PUT", POLICY, {"required": True}, "If-None-Match"),
        ("PUT", POLICY, {"required": True}, "If-Unmodified-Since"),
    ],
)
def test_a_condition_that_a_change_does_not_take_is_refused_by_name(
    admin: Caller, method: str, path: str, body: Any, header: str
) -> None:
    answer = admin.call(method, path, body, **{header.upper().replace("-", "_"): "*"})
    (wrong,) = answer.body["errors"]
    assert (answer.status, wrong["field"], wrong["code"]) == (400, header, "unknown")
    assert admin.get(POLICY).body["required"] is False
    assert admin.get("/v1/webhooks").body["results"] == []


def test_what_a_change_cannot_set_is_not_part_of_the_version(admin: Caller, other: User) -> None:
    path = f"/v1/members/{other.pk}"
    before = admin.get(path)
    User.objects.filter(pk=other.pk).update(last_login="2026-11-28T00:00Z")
    after = admin.get(path)
    assert after.body != before.body
    assert after.headers["ETag"] == before.headers["ETag"]


def test_a_change_without_a_version_sets_what_it_names_and_nothing_else(admin: Caller) -> None:
    admin.call("PUT", POLICY, {"required": True, "grace_period_days": 30})
    answer = admin.call("PUT", POLICY, {"grace_period_days": 14})
    assert (answer.body["required"], answer.body["grace_period_days"]) == (True, 14)


def test_another_organizations_version_says_nothing_about_it(charlie: User, other: User) -> None:
    answer = signed_in(charlie).call("PATCH", f"/v1/members/{other.pk}", {}, IF_MATCH='"x"')
    assert (answer.status, answer.code) == (404, "member_not_found")
