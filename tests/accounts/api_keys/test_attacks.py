"""Attacks on API keys."""

import logging

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.api_keys.api_keys import NewApiKey, create
from accounts.errors import SessionRevoked
from accounts.models import ApiKey, Session, User
from audit.models import AuditEvent
from common.errors import ApiKeyForbidden
from common.permissions import AccessRule, require
from common.principals import Principal
from environments import environments
from environments.models import Organization
from tests.accounts.api_keys.support import PATH, asked, holder, made, principal_of
from tests.accounts.profile.support import signed_up, user_of
from tests.cast import Caller, member, signed_in, with_proven_address
from tests.parallel import at_once
from tests.recovery.support import complete, proven
from tests.rules.routes import api_routes
from tests.twofactor.holder import with_totp

pytestmark = pytest.mark.django_db

# What a key with every scope may do. Nothing else: a new route is closed to keys until it is here.
OPEN_TO_KEYS = {
    "GET v1/whoami",
    "GET v1/permissions/effective",
    "GET v1/environments",
    "GET v1/environments/<str:environment_id>",
    "GET v1/environments/<str:environment_id>/contents",
    "GET v1/cache/activity",
    "GET v1/cache/status",
    "GET v1/cache/metrics",
    "GET v1/cache/metrics/history",
    "POST v1/cache/purge",
    "GET v1/cache/nodes",
    "GET v1/cache/nodes/<str:node_id>",
    "GET v1/cache/nodes/<str:node_id>/metrics",
    "GET v1/cache/nodes/<str:node_id>/audits",
}
# Operations that require step-up from users but not from keys, because programs have no second
# factor.
FRESH_AND_OPEN = {"POST v1/cache/origins"}
# Whole subjects, except other operations that require step-up.
SUBJECTS = ("v1/sql", "v1/cache/buckets", "v1/cache/origins", "v1/cache/access-keys")


@pytest.fixture
def co_admin(home: Organization) -> User:
    """Return a second admin, so that the first one can be demoted."""
    return with_proven_address(member(home, "dora@example.com"))


def refused(key: Caller) -> bool:
    return key.get("/v1/whoami").code == "api_key_invalid"


def test_a_key_reaches_data_and_nothing_of_accounts(alice: User) -> None:
    key, opened = principal_of(made(alice)["key"]), set()
    for route in api_routes():
        for method in route.methods:
            access = route.access_of(method)
            name = f"{method} {route.path}"
            if access.kind != "public" and may(access, key):
                assert access.is_fresh == (name in FRESH_AND_OPEN)
                opened.add(name)
    data = {name for name in opened if name.split(" ")[1].startswith(SUBJECTS)}
    assert opened - data == OPEN_TO_KEYS
    assert {"POST v1/sql", "DELETE v1/cache/buckets/<str:bucket_name>"} <= data


def may(access: AccessRule, principal: Principal) -> bool:
    try:
        require(access, principal)
    except ApiKeyForbidden:
        return False
    return True


CLOSED = ["members", "invitations", "domains", "audit", "organization", "api-keys", "auth/sessions"]


@pytest.mark.parametrize("path", [*CLOSED, "auth/2fa/policy", "balance", "usage", "cache/payouts"])
def test_an_account_is_closed_to_keys(alice: User, path: str) -> None:
    assert holder(alice).get(f"/v1/{path}").code == "api_key_forbidden"


def test_what_a_key_may_not_do_is_in_the_audit_trail(alice: User) -> None:
    body = made(alice)
    assert Caller(body["key"]).get("/v1/members").code == "api_key_forbidden"
    event = AuditEvent.objects.get(tag="api:permission:deny")
    assert (str(event.actor_id), event.actor) == (body["id"], "API key nightly import")


def test_a_key_makes_and_ends_no_key(alice: User) -> None:
    body = made(alice)
    key = Caller(body["key"])
    assert key.post(PATH, {"name": "x", "role": "admin"}).code == "api_key_forbidden"
    assert key.call("DELETE", f"{PATH}/{body['id']}").code == "api_key_forbidden"
    assert ApiKey.objects.filter(revoked_at=None).count() == 1


def test_only_an_admin_with_a_recent_proof_makes_one(alice: User, home: Organization) -> None:
    for role in ("operator", "reader"):
        lesser = member(home, f"{role}@example.com", role=role)
        assert asked(lesser, role="reader").code == "permission_denied"
    with_totp(alice)
    assert asked(alice).code == "step_up_required"
    assert not ApiKey.objects.exists()


def test_a_key_neither_reads_nor_alters_the_queries_that_members_run_elsewhere(alice: User) -> None:
    path, admin = "/v1/sql/queries", signed_in(alice)
    saved = admin.post(path, {"name": "Orders", "query": "SELECT 1"}).body
    own, key = f"{path}/{saved['id']}", holder(alice, "sandbox")
    answers = (
        key.call("PATCH", own, {"version": 1, "query": "DROP TABLE orders"}),
        key.post(path, {"name": "More orders", "query": "DROP TABLE orders"}),
        key.call("DELETE", own),
        key.get(own),
        key.get(path),
    )
    assert {answer.code for answer in answers} == {"api_key_forbidden"}
    assert admin.get(path).body["results"] == [saved]


def test_a_key_does_not_see_or_reach_another_environment(alice: User) -> None:
    key = holder(alice, "sandbox")
    assert [row["id"] for row in key.get("/v1/environments").body["results"]] == ["sandbox"]
    assert key.get("/v1/environments/live").status == 404
    assert key.get("/v1/environments/live/contents").status == 404
    assert key.get("/v1/whoami", X_ENVIRONMENT="live").body["environment"]["id"] == "sandbox"
    # Nor is it seen from there.
    assert signed_in(alice).get(PATH).body["results"] == []
    path = f"{PATH}/{ApiKey.objects.get().pk}"
    assert signed_in(alice).call("DELETE", path).code == "api_key_not_found"


def test_another_organization_neither_sees_nor_ends_it(alice: User, charlie: User) -> None:
    body = made(alice)
    stranger = signed_in(charlie)
    assert stranger.get(PATH).body["results"] == []
    assert stranger.call("DELETE", f"{PATH}/{body['id']}").code == "api_key_not_found"
    assert Caller(body["key"]).get("/v1/whoami").status == 200


def test_a_key_dies_with_its_creators_demotion_and_stays_dead(alice: User, co_admin: User) -> None:
    key, admin = holder(alice, role="reader"), signed_in(co_admin)
    assert admin.call("PATCH", f"/v1/members/{alice.pk}", {"roles": ["operator"]}).status == 200
    assert refused(key)
    admin.call("PATCH", f"/v1/members/{alice.pk}", {"roles": ["admin"]})
    assert refused(key)


def test_a_key_dies_when_its_creator_is_disabled_and_stays_dead(
    alice: User, co_admin: User
) -> None:
    key, admin = holder(alice), signed_in(co_admin)
    admin.call("PATCH", f"/v1/members/{alice.pk}", {"disabled": True})
    assert refused(key)
    admin.call("PATCH", f"/v1/members/{alice.pk}", {"disabled": False})
    assert refused(key)


def test_a_key_dies_with_its_creator(alice: User, co_admin: User) -> None:
    key = holder(alice)
    assert signed_in(co_admin).call("DELETE", f"/v1/members/{alice.pk}").status == 200
    assert refused(key)
    assert not ApiKey.objects.exists()


def test_a_role_that_goes_by_another_way_ends_the_key_as_well(alice: User) -> None:
    key = holder(alice)
    User.objects.filter(pk=alice.pk).update(roles=["operator"])
    assert refused(key)


def test_a_key_of_an_account_without_an_address_is_refused(alice: User) -> None:
    key = holder(alice)
    User.objects.filter(pk=alice.pk).update(email="")
    assert refused(key)


def test_a_key_of_an_account_that_loses_its_address_is_refused() -> None:
    attacker = signed_up("victim@example.com")
    answer = attacker.post(PATH, {"name": "x", "role": "admin"})
    assert answer.status == 201
    assert (
        complete(proven(user_of("victim@example.com")), password="the victim's own").status == 204
    )
    assert refused(Caller(answer.body["key"]))


def test_a_key_dies_with_its_environment(alice: User) -> None:
    environments.create(alice.organization_id, "stage")
    key = holder(alice, "stage")
    assert signed_in(alice).call("DELETE", "/v1/environments/stage").status == 204
    assert refused(key)
    # A new one of that name is another place.
    environments.create(alice.organization_id, "stage")
    assert refused(key)
    assert ApiKey.objects.get().revoke_reason == "environment_deleted"


def test_a_password_change_and_the_end_of_all_sessions_leave_keys(alice: User) -> None:
    key = holder(alice)
    signed_in(alice).call("DELETE", "/v1/auth/sessions")
    assert key.get("/v1/whoami").status == 200


def test_a_mistyped_key_costs_no_query_and_an_unknown_one_a_single_one(
    alice: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    key, gone = made(alice)["key"], made(alice)
    ApiKey.objects.filter(pk=gone["id"]).delete()
    wrong = (key[:-1], key + "0", f"{key[:-1]}~", "zk_", "zk_live_", f"zk_live_{'a' * 49}")
    with django_assert_num_queries(0):
        for guess in wrong:
            assert Caller(guess).get("/v1/whoami").code == "api_key_invalid"
    with django_assert_num_queries(1):
        unknown = Caller(gone["key"]).get("/v1/whoami")
    mistyped = Caller(key[:-1]).get("/v1/whoami")
    assert unknown.status == mistyped.status == 401
    assert unknown.body | {"request_id": ""} == mistyped.body | {"request_id": ""}


def test_the_digest_is_not_a_key(alice: User) -> None:
    made(alice)
    row = ApiKey.objects.get()
    for guess in (row.digest, f"zk_live_{row.digest[:49]}", str(row.pk)):
        assert Caller(guess).get("/v1/whoami").status == 401


def test_a_key_is_in_no_log_and_no_error(
    alice: User, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG):
        key = made(alice)["key"]
        answers = [
            Caller(key).get("/v1/whoami"),
            Caller(key).get(f"/v1/environments/{key}"),
            Caller(key + "x").get("/v1/whoami"),
            Caller(key).call("POST", "/v1/auth/refresh", {"refresh_token": key}),
        ]
        logging.getLogger("zonal.test").error("tried %s", key)
    said = "".join(answer.raw.content.decode() for answer in answers)
    assert key[8:-6] not in said + caplog.text.replace(f"tried {key}", "")
    assert key[8:-6] not in capfd.readouterr().err


def test_keys_of_an_organization_are_limited_in_number_and_per_day(
    alice: User, charlie: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounts.api_keys.api_keys.KEYS_PER_ORGANIZATION", 2)
    monkeypatch.setattr("accounts.api_keys.api_keys.KEYS_PER_DAY", 4)
    made(alice)
    # All environments count together.
    second = made(alice, "sandbox")
    assert asked(alice).code == "too_many_api_keys"
    assert signed_in(alice, "sandbox").call("DELETE", f"{PATH}/{second['id']}").status == 204
    made(alice)
    answer = asked(alice)
    assert answer.code == "api_keys_made_too_often"
    assert int(answer.headers["Retry-After"]) > 0
    made(charlie)


@pytest.mark.django_db(transaction=True)
def test_concurrently_requested_keys_do_not_exceed_the_limit(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounts.api_keys.api_keys.KEYS_PER_ORGANIZATION", 2)
    admin = signed_in(alice)

    def ask() -> int:
        return admin.post(PATH, {"name": "x", "role": "reader"}).status

    assert sorted(at_once(*[ask] * 6)) == [201, 201, 409, 409, 409, 409]
    assert ApiKey.objects.count() == 2


def test_a_caller_demoted_or_signed_out_in_the_meantime_gets_no_key(alice: User) -> None:
    principal = principal_of(signed_in(alice).access_token)
    User.objects.filter(pk=alice.pk).update(roles=["operator"])
    with pytest.raises(SessionRevoked):
        create(principal, NewApiKey("x", "reader"), now=timezone.now())
    User.objects.filter(pk=alice.pk).update(roles=["admin"])
    Session.objects.update(ended_at=timezone.now())
    with pytest.raises(SessionRevoked):
        create(principal, NewApiKey("x", "reader"), now=timezone.now())
    assert not ApiKey.objects.exists()
