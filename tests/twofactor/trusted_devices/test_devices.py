"""Trusted devices skip the second factor at login, and nothing else; they die with any change."""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, cast

import pytest
import time_machine
from django.db import connection
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from accounts.models import KnownDevice, User
from common.models import Throttle
from common.principals import PlatformRequest
from tests import inbox
from tests.cast import Caller, signed_in
from tests.parallel import at_once
from tests.twofactor.holder import Holder, ask, log_in, pending, reply
from twofactor.challenges import challenge_base
from twofactor.models import Factor, TrustedDevice
from twofactor.trusted_devices import devices

pytestmark = pytest.mark.django_db
DEVICES = "/v1/auth/2fa/trusted-devices"


@pytest.fixture
def device(holder: Holder) -> str:
    answer = reply(
        ask(pending(log_in())), holder.code(), trust_device=True, device_name="Alice's phone"
    )
    token: str = answer.body["device_token"]
    return token


def test_a_trusted_device_skips_the_second_factor(device: str) -> None:
    answer = log_in(X_DEVICE_TOKEN=device)
    assert answer.body["status"] == "authenticated"
    assert Caller(answer.body["access_token"]).get("/v1/whoami").body["aal"] == 1


def test_a_device_token_is_rotated_and_a_repeat_within_ten_seconds_gets_the_same_one(
    device: str,
) -> None:
    start = timezone.now()
    with time_machine.travel(start, tick=False) as clock:
        first = log_in(X_DEVICE_TOKEN=device).body["device_token"]
        assert first != device
        assert log_in(X_DEVICE_TOKEN=device).body["device_token"] == first
        clock.shift(timedelta(seconds=11))
        assert log_in(X_DEVICE_TOKEN=device).body["status"] == "mfa_required"
        assert log_in(X_DEVICE_TOKEN=first).body["status"] == "authenticated"


def test_a_trusted_device_survives_a_key_rotation(device: str, settings: Settings) -> None:
    settings.ACCOUNTS = replace(settings.ACCOUNTS, mfa_keys=("n" * 48, *settings.ACCOUNTS.mfa_keys))
    answer = log_in(X_DEVICE_TOKEN=device)
    assert answer.body["status"] == "authenticated"
    settings.ACCOUNTS = replace(settings.ACCOUNTS, mfa_keys=("n" * 48,))
    again = log_in(X_DEVICE_TOKEN=answer.body["device_token"])
    assert again.body["status"] == "authenticated"


def test_a_trusted_device_never_steps_up_a_session(device: str) -> None:
    caller = Caller(log_in(X_DEVICE_TOKEN=device).body["access_token"])
    assert caller.post("/v1/auth/2fa/backup-codes").code == "step_up_required"


def test_a_trusted_device_does_not_replace_the_password(device: str) -> None:
    assert log_in(password="wrong password", X_DEVICE_TOKEN=device).status == 401


def test_another_users_device_is_not_accepted(device: str, charlie: User, holder: Holder) -> None:
    TrustedDevice.objects.update(user=charlie, organization=charlie.organization)
    assert log_in(X_DEVICE_TOKEN=device).body["status"] == "mfa_required"


@pytest.mark.parametrize("token", ["", "x", ".", "x.y", "é.é", "0" * 5000])
def test_a_malformed_device_token_is_ignored(device: str, token: str) -> None:
    assert log_in(X_DEVICE_TOKEN=token).body["status"] == "mfa_required"


def test_ten_failures_of_a_device_forget_it(device: str) -> None:
    wrong = device.partition(".")[0] + "." + "0" * 64
    for _ in range(10):
        assert log_in(X_DEVICE_TOKEN=wrong).body["status"] == "mfa_required"
    assert log_in(X_DEVICE_TOKEN=device).body["status"] == "mfa_required"


def slow_down() -> None:
    """Guess at the account from elsewhere, until a right password is not listened to either."""
    for _ in range(5):
        log_in(password="wrong password")
    # The trusted device travels: no sign-in came from the network that it is in now.
    KnownDevice.objects.all().delete()
    # The wait after many more of them, so that it does not end while a test runs.
    Throttle.objects.update(blocked_until=timezone.now() + timedelta(minutes=15))
    assert log_in().status == 401


def test_a_trusted_device_signs_in_while_the_account_is_throttled(
    device: str, settings: Settings
) -> None:
    slow_down()
    answer = log_in(X_DEVICE_TOKEN=device)
    assert answer.body["status"] == "authenticated"
    assert TrustedDevice.objects.get().failures == 0
    # That gives attackers no new attempts.
    assert log_in(USER_AGENT="curl/8.5.0").status == 401
    assert log_in(X_DEVICE_TOKEN=answer.body["device_token"]).status == 200


def test_ten_wrong_passwords_on_a_throttled_account_forget_the_device(
    device: str, settings: Settings
) -> None:
    slow_down()
    wrong = [log_in(password="wrong password", X_DEVICE_TOKEN=device) for _ in range(10)]
    assert {(answer.status, answer.code) for answer in wrong} == {(401, "invalid_credentials")}
    assert not TrustedDevice.objects.exists()
    assert log_in(X_DEVICE_TOKEN=device).status == 401


def test_the_tenth_password_may_be_right_and_the_second_factor_is_asked_for(
    device: str, settings: Settings
) -> None:
    slow_down()
    for _ in range(9):
        log_in(password="wrong password", X_DEVICE_TOKEN=device)
    assert log_in(X_DEVICE_TOKEN=device).body["status"] == "mfa_required"


def test_another_users_device_is_ignored_and_not_counted(
    device: str, charlie: User, settings: Settings
) -> None:
    slow_down()
    theirs = devices.token_for(devices.trust(charlie, "phone", now=timezone.now()))
    forged = device.partition(".")[0] + "." + "0" * 64
    for token in (theirs, forged, "", "x", "x.y"):
        assert log_in(X_DEVICE_TOKEN=token).status == 401
    assert set(TrustedDevice.objects.values_list("failures", flat=True)) == {0}
    assert log_in(X_DEVICE_TOKEN=device).status == 200


def test_an_address_without_an_account_costs_the_same(device: str, charlie: User) -> None:
    request = cast(PlatformRequest, RequestFactory().get("/", headers={"X-Device-Token": device}))
    taken = []
    for user in (None, charlie):
        with CaptureQueriesContext(connection) as queries:
            assert not devices.is_from_trusted_device(request, user, now=timezone.now())
        taken.append(len(queries))
    assert taken[0] == taken[1] > 0


@pytest.mark.django_db(transaction=True)
def test_parallel_guesses_from_a_device_are_limited_to_ten_tries(device: str, alice: User) -> None:
    request = cast(PlatformRequest, RequestFactory().get("/", headers={"X-Device-Token": device}))
    tries = [
        partial(devices.is_from_trusted_device, request, alice, now=timezone.now())
        for _ in range(16)
    ]
    assert sum(at_once(*tries)) == 10


def test_a_step_up_does_not_restore_trust_that_ends_in_the_meantime(
    device: str, holder: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = Caller().holding(log_in(X_DEVICE_TOKEN=device))
    challenge = ask(caller)
    Factor.objects.update(last_step=0)
    is_right = challenge_base.is_right

    def policy_changes_first(*args: Any, **more: Any) -> bool:
        devices.delete_all_within(holder.user.organization_id)
        return is_right(*args, **more)

    monkeypatch.setattr(challenge_base, "is_right", policy_changes_first)
    assert reply(challenge, holder.code()).status == 200
    assert caller.get("/v1/whoami").body["amr"] == ["mfa", "otp", "pwd"]


def test_the_least_recently_used_device_beyond_the_limit_is_forgotten(
    device: str, holder: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert devices.MAX_DEVICES == 50
    monkeypatch.setattr(devices, "MAX_DEVICES", 2)
    for name in ("laptop", "tablet"):
        Factor.objects.update(last_step=0)
        reply(ask(pending(log_in())), holder.code(), trust_device=True, device_name=name)
    kept = signed_in(holder.user).get(DEVICES).body["results"]
    assert sorted(row["name"] for row in kept) == ["laptop", "tablet"]
    assert log_in(X_DEVICE_TOKEN=device).body["status"] == "mfa_required"


def test_a_trusted_device_expires_after_thirty_days(device: str) -> None:
    with time_machine.travel(timezone.now() + timedelta(days=30, seconds=1)):
        assert log_in(X_DEVICE_TOKEN=device).body["status"] == "mfa_required"


def test_removing_a_factor_forgets_trusted_devices(device: str, holder: Holder) -> None:
    holder.caller.call("DELETE", "/v1/auth/2fa/method/backup_codes")
    assert log_in(X_DEVICE_TOKEN=device).body["status"] == "mfa_required"


def test_adding_a_factor_forgets_trusted_devices(device: str, holder: Holder) -> None:
    begun = holder.caller.post("/v1/auth/2fa/email/setup").body
    body = {"verification_id": begun["verification_id"], "code": inbox.email_code()}
    assert holder.caller.post("/v1/auth/2fa/email/verify", body).status == 200
    assert log_in(X_DEVICE_TOKEN=device).body["status"] == "mfa_required"


def test_a_change_of_policy_forgets_trusted_devices(device: str, holder: Holder) -> None:
    holder.caller.call("PUT", "/v1/auth/2fa/policy", {"grace_period_days": 3})
    assert log_in(X_DEVICE_TOKEN=device).body["status"] == "mfa_required"


def test_devices_are_listed_and_removed(device: str, holder: Holder) -> None:
    rows = holder.caller.get(DEVICES).body["results"]
    assert [row["name"] for row in rows] == ["Alice's phone"]
    assert set(rows[0]) == {"id", "name", "created_at", "last_used_at", "expires_at"}
    assert isinstance(rows[0]["created_at"], int)
    assert holder.caller.call("DELETE", f"{DEVICES}/{rows[0]['id']}").status == 204
    assert log_in(X_DEVICE_TOKEN=device).body["status"] == "mfa_required"
    answer = holder.caller.call("DELETE", f"{DEVICES}/{rows[0]['id']}")
    assert (answer.status, answer.code) == (404, "device_not_found")


def test_anothers_device_cannot_be_removed(device: str, bob: User) -> None:
    key = TrustedDevice.objects.get().pk
    assert signed_in(bob).call("DELETE", f"{DEVICES}/{key}").code == "device_not_found"
    assert TrustedDevice.objects.exists()


def test_the_owner_is_notified_of_a_trusted_device(device: str) -> None:
    assert "trusted_device_added" in inbox.notices_to("alice@example.com")
