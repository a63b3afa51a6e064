"""API keys: made, listed, used and revoked."""

import re
import string
import zlib
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.api_keys import api_keys
from accounts.models import ApiKey, User
from audit.models import AuditEvent
from tests import inbox
from tests.accounts.api_keys.support import PATH, asked, holder, made
from tests.cast import Caller, signed_in
from tests.parallel import at_once

pytestmark = pytest.mark.django_db


def test_a_key_is_shown_once_and_only_its_digest_is_kept(alice: User) -> None:
    body = made(alice, name="nightly import", role="operator")
    assert re.fullmatch(r"zk_live_[0-9A-Za-z]{49}", body["key"])
    assert body["expires_at"] - body["created_at"] == 90 * 86400
    assert body["hint"] in body["key"]
    shown = signed_in(alice).get(PATH).raw.content.decode()
    shown += signed_in(alice).get(f"{PATH}/{body['id']}").raw.content.decode()
    stored = str(ApiKey.objects.values()) + str(AuditEvent.objects.values())
    assert body["key"][8:-6] not in shown + stored + str(inbox.messages("mail"))
    assert "nightly import" in shown


def test_a_key_tells_its_kind_of_environment_by_its_prefix(alice: User) -> None:
    assert made(alice, "sandbox")["key"].startswith("zk_test_")


def test_every_key_is_another_and_its_checksum_is_that_of_the_docs(alice: User) -> None:
    digits = string.digits + string.ascii_uppercase + string.ascii_lowercase
    keys = {made(alice)["key"] for _ in range(5)}
    assert len(keys) == 5
    for key in keys:
        number = zlib.crc32(key[:-6].encode())
        for digit in reversed(key[-6:]):
            number, expected = divmod(number, 62)
            assert digits[expected] == digit
        assert number == 0


def test_the_creator_gets_a_mail_and_the_audit_trail_has_the_key(alice: User) -> None:
    body = made(alice, scopes=["sql:write"])
    (mail,) = inbox.messages("mail")
    assert (mail["template"], mail["to"]) == ("api_key_created", "alice@example.com")
    event = AuditEvent.objects.get(tag="api:api_key:create")
    assert event.data["key"] == body["id"]
    assert event.data["scopes"] == ["sql:read", "sql:write"]


def test_whoami_of_a_key_names_its_environment_and_no_user(alice: User) -> None:
    body = made(alice, "sandbox", role="operator")
    who = Caller(body["key"]).get("/v1/whoami").body
    assert (who["user_id"], who["email"], who["session_id"]) == (None, None, None)
    assert who["environment"]["id"] == "sandbox"
    assert who["roles"] == ["operator"]
    assert who["api_key_id"] == body["id"]
    assert who["access_expires_at"] == body["expires_at"]


def test_effective_permissions_end_where_the_scopes_do(alice: User) -> None:
    key = holder(alice, scopes=["sql:write", "buckets:read"])
    assert key.get("/v1/permissions/effective").body["permissions"] == {
        "sql": ["create", "read", "update", "delete"],
        "buckets": ["read"],
    }


def test_a_request_with_a_key_costs_one_query(
    alice: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    key = holder(alice)
    with django_assert_num_queries(2):
        key.get("/v1/whoami")  # the first use of a minute is noted
    with django_assert_num_queries(1):
        key.get("/v1/whoami")


def test_the_last_use_is_shown_and_written_once_a_minute(alice: User) -> None:
    body = made(alice)
    path, start = f"{PATH}/{body['id']}", timezone.now()
    assert signed_in(alice).get(path).body["last_used_at"] is None
    with time_machine.travel(start, tick=False) as clock:
        for after_s, noted_s in ((0, 0), (59, 0), (61, 61)):
            clock.move_to(start + timedelta(seconds=after_s))
            Caller(body["key"]).get("/v1/whoami")
            used = ApiKey.objects.get().last_used_at
            assert used == start + timedelta(seconds=noted_s)
    shown = signed_in(alice).get(path).body
    assert shown["last_used_at"] == int(start.timestamp()) + 61
    assert shown["last_used_address"] == "127.0.0.1"


def test_a_revoked_key_is_refused_on_its_next_request(alice: User) -> None:
    body = made(alice)
    key, admin = Caller(body["key"]), signed_in(alice)
    assert key.get("/v1/whoami").status == 200
    assert admin.call("DELETE", f"{PATH}/{body['id']}").status == 204
    assert key.get("/v1/whoami").code == "api_key_invalid"
    assert admin.get(f"{PATH}/{body['id']}").body["state"] == "revoked"
    # Again it changes nothing.
    ended = ApiKey.objects.get().revoked_at
    assert admin.call("DELETE", f"{PATH}/{body['id']}").status == 204
    assert ApiKey.objects.get().revoked_at == ended


def test_an_expired_key_is_refused_and_says_so(alice: User) -> None:
    body = made(alice, expires_in_days=1)
    with time_machine.travel(timezone.now() + timedelta(days=1, seconds=1)):
        assert Caller(body["key"]).get("/v1/whoami").code == "api_key_expired"
        assert signed_in(alice).get(f"{PATH}/{body['id']}").body["state"] == "expired"
        assert [row["id"] for row in listed(alice, "expired")] == [body["id"]]
        assert listed(alice, "active") == []


def listed(user: User, state: str) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = signed_in(user).get(f"{PATH}?state={state}").body["results"]
    return rows


def test_ended_keys_are_listed_for_a_month(alice: User) -> None:
    revoked, expired, live = made(alice), made(alice, expires_in_days=1), made(alice)
    signed_in(alice).call("DELETE", f"{PATH}/{revoked['id']}")
    now = timezone.now()
    assert api_keys.delete_old(now=now + timedelta(days=29)) == 0
    assert [row["id"] for row in listed(alice, "revoked")] == [revoked["id"]]
    assert api_keys.delete_old(now=now + timedelta(days=32)) == 2
    assert str(ApiKey.objects.get().pk) == live["id"]
    assert expired["id"] != live["id"]


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"expires_in_days": 366}, "expires_in_days"),
        ({"expires_in_days": 0}, "expires_in_days"),
        ({"role": "owner"}, "role"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["members:write"]}, "scopes.0"),
        ({"role": "reader", "scopes": ["sql:write"]}, "scopes"),
        ({"role": "operator", "scopes": ["schema:write"]}, "scopes"),
        ({"name": ""}, "name"),
        ({"environment_id": "sandbox"}, "environment_id"),
    ],
)
def test_a_key_beyond_the_limits_is_refused(
    alice: User, wanted: dict[str, Any], field: str
) -> None:
    answer = asked(alice, **wanted)
    assert answer.status == 400
    assert [error["field"] for error in answer.body["errors"]] == [field]
    assert not ApiKey.objects.exists()


def test_a_wrong_choice_is_answered_with_the_right_ones(alice: User) -> None:
    [wrong] = asked(alice, role="owner").body["errors"]
    assert wrong["code"] == "invalid_choice"
    assert wrong["message"] == '"owner" is not one of "admin", "operator", "reader".'
    [wrong] = asked(alice, scopes=["members:{0}"]).body["errors"]
    assert wrong["message"].startswith('"members:{0}" is not one of "sql:read", ')


@pytest.mark.django_db(transaction=True)
def test_concurrent_requests_all_pass_and_record_one_use(alice: User) -> None:
    body = made(alice)

    def use() -> int:
        return Caller(body["key"]).get("/v1/whoami").status

    assert at_once(*[use] * 8) == [200] * 8
    assert ApiKey.objects.get().last_used_at is not None
