"""Single passkeys: listed and removed by their owner alone."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import time_machine
from django.db import connection
from django.utils import timezone

from accounts.models import User
from audit.models import AuditEvent
from environments.models import Organization
from outbox.models import Delivery
from tests.cast import Answer, Caller, signed_in
from tests.twofactor.holder import ask, with_totp
from tests.twofactor.webauthn.authenticator import Authenticator
from tests.twofactor.webauthn.holder import (
    CREDENTIALS,
    KeyHolder,
    prove,
    register,
    sign_in,
    with_passkey,
)
from twofactor.models import Factor, Passkey, TrustedDevice
from twofactor.trusted_devices import devices

pytestmark = pytest.mark.django_db


def remove(caller: Caller, key: Authenticator) -> Answer:
    return caller.call("DELETE", f"{CREDENTIALS}/{key.credential_id}")


def test_the_list_shows_names_and_times_and_no_key(key_holder: KeyHolder) -> None:
    register(key_holder.caller, Authenticator(), credential_name="Second")
    body = key_holder.caller.get(CREDENTIALS).body
    assert [row["name"] for row in body["results"]] == ["Second", "Passkey"]
    assert set(body["results"][0]) == {
        "credential_id",
        "name",
        "created_at",
        "last_used_at",
        "rp_id",
        "transports",
        "backup_eligible",
        "user_verified",
    }
    assert body["results"][1]["credential_id"] == key_holder.key.credential_id
    assert body["results"][1]["last_used_at"] is None


def test_a_user_does_not_see_another_users_passkeys(
    key_holder: KeyHolder, bob: User, charlie: User
) -> None:
    for user in (bob, charlie):
        assert signed_in(user).get(CREDENTIALS).body["results"] == []


def test_removing_one_of_several_passkeys_keeps_the_method(key_holder: KeyHolder) -> None:
    second = Authenticator()
    register(key_holder.caller, second)
    devices.trust(key_holder.user, "Laptop", now=timezone.now())
    assert remove(key_holder.caller, second).status == 204
    assert [bytes(row.credential_id) for row in Passkey.objects.all()] == [key_holder.key.raw_id]
    assert Factor.objects.filter(method="webauthn").exists()
    assert not TrustedDevice.objects.exists()
    assert AuditEvent.objects.filter(tag="api:passkey:delete").count() == 1
    assert Delivery.objects.filter(template="factor_removed").count() == 1


def test_removing_the_last_passkey_removes_the_method(key_holder: KeyHolder) -> None:
    assert remove(key_holder.caller, key_holder.key).status == 204
    assert not Factor.objects.exists()
    assert key_holder.caller.get("/v1/auth/2fa/status").body["enabled"] is False
    assert Delivery.objects.filter(template="factor_removed").count() == 1


def test_the_last_passkey_cannot_be_removed_while_the_policy_requires_it(
    key_holder: KeyHolder,
) -> None:
    Organization.objects.update(mfa_required=True, mfa_required_since=timezone.now())
    answer = remove(key_holder.caller, key_holder.key)
    assert (answer.status, answer.code) == (409, "required_by_policy")
    second = Authenticator()
    register(key_holder.caller, second)
    assert remove(key_holder.caller, second).status == 204
    assert not AuditEvent.objects.filter(tag="api:factor:delete").exists()


def test_the_last_passkey_can_be_removed_while_another_allowed_factor_is_left(alice: User) -> None:
    totp = with_totp(alice)
    key = Authenticator()
    register(totp.caller, key)
    Organization.objects.update(mfa_required=True, mfa_required_since=timezone.now())
    assert remove(totp.caller, key).status == 204
    assert sorted(Factor.objects.values_list("method", flat=True)) == ["backup_codes", "totp"]


def test_another_users_unknown_and_malformed_passkeys_get_the_same_response(
    key_holder: KeyHolder, bob: User, charlie: User
) -> None:
    answers = [remove(signed_in(user), key_holder.key) for user in (bob, charlie)]
    answers.append(remove(key_holder.caller, Authenticator()))
    answers += [
        key_holder.caller.call("DELETE", f"{CREDENTIALS}/{name}")
        for name in ("!", "A" * 5000, "AAAAA")
    ]
    for answer in answers:
        assert (answer.status, answer.code) == (404, "passkey_not_found")
    assert Passkey.objects.count() == 1


def test_removing_a_passkey_requires_a_recent_proof(key_holder: KeyHolder) -> None:
    other = signed_in(key_holder.user)
    answer = remove(other, key_holder.key)
    assert (answer.status, answer.code) == (403, "step_up_required")
    assert prove(ask(other), key_holder.key).status == 200
    with time_machine.travel(timezone.now() + timedelta(seconds=890)):
        assert remove(other, key_holder.key).status == 204


def test_one_passkey_of_each_user_does_not_touch_the_others(
    key_holder: KeyHolder, charlie: User
) -> None:
    theirs = with_passkey(charlie)
    assert remove(key_holder.caller, key_holder.key).status == 204
    assert bytes(Passkey.objects.get().credential_id) == theirs.key.raw_id


def test_the_last_sign_in_method_cannot_be_removed(charlie: User) -> None:
    holder = with_passkey(charlie)
    register(holder.caller, Authenticator(is_user_verified=False))
    answers = [
        remove(holder.caller, holder.key),
        holder.caller.call("DELETE", "/v1/auth/2fa/method/webauthn"),
    ]
    assert [(answer.status, answer.code) for answer in answers] == [(409, "last_login_method")] * 2
    assert Passkey.objects.count() == 2
    assert sign_in(holder.key).status == 200


def test_of_two_passkeys_that_sign_in_one_can_be_removed(charlie: User) -> None:
    holder = with_passkey(charlie)
    register(holder.caller, Authenticator())
    assert remove(holder.caller, holder.key).status == 204


@pytest.mark.django_db(transaction=True)
def test_the_last_two_removed_concurrently_leave_no_empty_method(alice: User) -> None:
    holder = with_passkey(alice)
    for _ in range(4):
        keys = [holder.key, Authenticator()]
        assert register(holder.caller, keys[1]).status == 200

        def once(key: Authenticator) -> int:
            try:
                return remove(holder.caller, key).status
            finally:
                connection.close()

        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(once, keys)) == [204, 204]
        assert not Factor.objects.exists()
        assert register(holder.caller, holder.key).status == 200
