"""Login: one answer for every failure, one hash in each case, limits that hold in parallel."""

import ipaddress
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from queue import SimpleQueue
from typing import Any
from unittest.mock import patch

import pytest
import time_machine
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from accounts import passwords
from accounts.errors import HashingBusy
from accounts.models import User
from audit.models import AuditEvent
from common import rate_limits
from common.fair_limiter import FairLimiter
from common.web import client_presence
from environments import environments
from environments.models import Organization
from tests.cast import PASSWORD, Answer, Caller, member
from tests.scrape import growth

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice(home: Organization) -> User:
    return member(home, "alice@example.com", password=PASSWORD)


def log_in(email: str = "alice@example.com", password: str = PASSWORD, **more: Any) -> Answer:
    return Caller().post("/v1/auth/login", {"email": email, "password": password, **more})


def without_id(answer: Answer) -> dict[str, Any]:
    return {key: value for key, value in answer.body.items() if key != "request_id"}


def test_login_answers_authenticated_with_tokens(alice: User) -> None:
    answer = log_in("Alice@EXAMPLE.com")
    assert answer.status == 200
    assert answer.body["status"] == "authenticated"
    assert answer.body["warnings"] == []
    assert Caller(answer.body["access_token"]).get("/v1/whoami").status == 200


def test_login_uses_the_environment_asked_for_by_id_or_name(alice: User) -> None:
    environments.create(alice.organization_id, "stage-1", name="Staging One")
    assert log_in(environment="sandbox").body["environment"]["id"] == "sandbox"
    assert log_in(environment="staging one").body["environment"]["id"] == "stage-1"


def test_login_without_environment_uses_the_last_used_one(alice: User) -> None:
    assert log_in().body["environment"]["id"] == "live"
    log_in(environment="sandbox")
    assert log_in().body["environment"]["id"] == "sandbox"


def test_login_falls_back_to_live_when_the_last_environment_is_deleted(alice: User) -> None:
    environments.create(alice.organization_id, "gone")
    log_in(environment="gone")
    with patch("environments.environments.ALL", []):
        environments.delete(alice.organization_id, "gone", now=timezone.now())
    assert log_in().body["environment"]["id"] == "live"


def test_login_to_an_unknown_environment_is_404(alice: User) -> None:
    assert log_in(environment="nowhere").code == "environment_not_found"


def test_unknown_wrong_disabled_and_slowed_look_the_same(alice: User) -> None:
    wrong = log_in(password="wrong password")
    unknown = log_in("nobody@example.com")
    User.objects.filter(pk=alice.pk).update(is_active=False)
    disabled = log_in()
    assert {wrong.status, unknown.status, disabled.status} == {401}
    assert without_id(wrong) == without_id(unknown) == without_id(disabled)
    assert wrong.code == "invalid_credentials"
    assert "WWW-Authenticate" in wrong.headers


def test_each_failure_costs_exactly_one_hash(alice: User) -> None:
    hashes: list[str] = []
    verify, encode = passwords.TunedArgon2Hasher.verify, passwords.TunedArgon2Hasher.encode

    def counted_verify(self: Any, *args: Any) -> Any:
        hashes.append("verify")
        return verify(self, *args)

    def counted_encode(self: Any, *args: Any) -> Any:
        hashes.append("encode")
        return encode(self, *args)

    with (
        patch.object(passwords.TunedArgon2Hasher, "verify", counted_verify),
        patch.object(passwords.TunedArgon2Hasher, "encode", counted_encode),
    ):
        for email, password in [
            ("alice@example.com", "wrong password"),
            ("nobody@example.com", PASSWORD),
            ("nul\0@example.com", PASSWORD),
        ]:
            hashes.clear()
            log_in(email, password)
            assert len(hashes) <= 1, email
            if "\0" not in email:
                assert len(hashes) == 1, email


def test_a_throttled_account_gives_the_same_response_to_right_and_wrong(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounts.signin.credentials.LOGINS_PER_ACCOUNT", 3)
    for _ in range(3):
        log_in(password="wrong password")
    right, wrong = log_in(), log_in(password="wrong password")
    assert right.status == wrong.status == 401
    assert without_id(right) == without_id(wrong)
    assert {k: v for k, v in right.headers.items() if k != "X-Request-Id"} == {
        k: v for k, v in wrong.headers.items() if k != "X-Request-Id"
    }


def test_an_attacker_cannot_lock_an_account_for_longer_than_15_minutes(
    alice: User, settings: Settings
) -> None:
    settings.ACCOUNTS = replace(settings.ACCOUNTS, logins_per_address=10_000)
    start = timezone.now()
    with time_machine.travel(start, tick=False) as clock:
        for _ in range(30):
            log_in(password="wrong password")
            clock.shift(timedelta(seconds=901))
        assert log_in().status == 200


def test_a_correct_password_resets_the_count_of_wrong_ones(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounts.signin.credentials.LOGINS_PER_ACCOUNT", 3)
    for _ in range(4):
        log_in(password="wrong password")
        assert log_in().status == 200


def test_one_address_is_limited_over_all_accounts(settings: Settings) -> None:
    settings.ACCOUNTS = replace(settings.ACCOUNTS, logins_per_address=3)
    for number in range(3):
        assert log_in(f"user{number}@example.com").status == 401
    answer = log_in("user9@example.com")
    assert (answer.status, answer.code) == (429, "too_many_attempts")
    assert int(answer.headers["Retry-After"]) > 0


def test_a_forwarded_address_is_a_callers_word_until_a_proxy_is_trusted(
    settings: Settings,
) -> None:
    settings.ACCOUNTS = replace(settings.ACCOUNTS, logins_per_address=3)

    def statuses(network: str) -> list[int]:
        body = {"email": "nobody@example.com", "password": PASSWORD}
        sent = [f"{network}::{number}" for number in range(5)]
        return [
            Caller().post("/v1/auth/login", body, X_FORWARDED_FOR=address).status
            for address in sent
        ]

    assert statuses("2001:db8:1:1") == [401, 401, 401, 429, 429]
    settings.TRUSTED_PROXIES = (ipaddress.ip_network("127.0.0.0/8"),)
    # Now each network counts by itself, and an IPv6 one as a whole.
    assert statuses("2001:db8:1:2") == [401, 401, 401, 429, 429]
    assert statuses("2001:db8:1:3") == [401, 401, 401, 429, 429]


def test_successful_logins_do_not_use_up_the_limit_of_the_address(
    alice: User, settings: Settings
) -> None:
    settings.ACCOUNTS = replace(settings.ACCOUNTS, logins_per_address=3)
    for _ in range(5):
        assert log_in().status == 200


@pytest.mark.django_db(transaction=True)
def test_parallel_guesses_cannot_slip_past_the_limit(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ACCOUNTS = replace(settings.ACCOUNTS, logins_per_address=10_000)
    monkeypatch.setattr("accounts.signin.credentials.LOGINS_PER_ACCOUNT", 3)
    looked_at: list[bool] = []
    # One moment for all: on a slow machine the pause would end while they run.
    now = timezone.now()

    def guess(_: int) -> None:
        try:
            looked_at.append(rate_limits.attempt("login", "alice@example.com", free=3, now=now))
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(guess, range(40)))
    assert looked_at.count(True) == 3


def test_a_changed_cost_is_applied_at_the_next_right_password(alice: User) -> None:
    before = User.objects.get(pk=alice.pk).password
    with patch.object(passwords.TunedArgon2Hasher, "time_cost", 3):
        assert log_in().status == 200
    after = User.objects.get(pk=alice.pk).password
    assert "t=3" in after
    assert after != before
    assert log_in().status == 200


def test_a_refused_login_is_in_the_trail_of_its_organization(alice: User) -> None:
    log_in(password="wrong password")
    event = AuditEvent.objects.get(organization_id=alice.organization_id)
    assert (event.tag, event.outcome, event.actor_id) == (
        "api:session:create",
        "refused",
        alice.pk,
    )
    assert "wrong password" not in str(vars(event))


def test_too_many_concurrent_hashes_are_503(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "WAIT_S", 0.01)
    held = [passwords._slots.acquire() for _ in range(2)]
    try:
        answer = log_in()
    finally:
        for _ in held:
            passwords._slots.release()
    assert (answer.status, answer.code) == (503, "busy")
    assert answer.headers["Retry-After"] == "1"
    assert log_in().status == 200


def test_a_sign_in_that_finds_the_queue_of_hashes_full_does_not_wait(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passwords, "_slots", threading.BoundedSemaphore(0))
    monkeypatch.setattr(passwords, "_hashing_slots", FairLimiter(0))
    monkeypatch.setattr(passwords, "WAIT_S", 60)

    assert (log_in().status, log_in().code) == (503, "busy")


def test_one_client_does_not_take_all_places_of_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    slots = threading.Semaphore(0)
    monkeypatch.setattr(passwords, "_slots", slots)
    monkeypatch.setattr(passwords, "_hashing_slots", FairLimiter(10))
    monkeypatch.setattr(passwords, "WAIT_S", 60)
    outcomes: SimpleQueue[str] = SimpleQueue()

    def hash_for(network: str) -> None:
        client_presence.set_client_socket(None, network)
        try:
            passwords.hash_password(PASSWORD)
            outcomes.put("hashed")
        except HashingBusy:
            outcomes.put("busy")

    threads = ThreadPoolExecutor(64)
    for _ in range(20):
        threads.submit(hash_for, "192.0.2.1")
    assert {outcomes.get(timeout=10) for _ in range(15)} == {"busy"}
    threads.submit(hash_for, "192.0.2.2")
    for _ in range(6):
        slots.release()
    assert [outcomes.get(timeout=10) for _ in range(6)] == ["hashed"] * 6


def test_sign_ins_are_counted_by_outcome_and_reason(alice: User) -> None:
    with growth() as seen:
        log_in()
        log_in(password="wrong horse")
        log_in("nobody@example.com")

    labels = {"method": "password", "outcome": "success", "second_factor": ""}
    assert seen.of("zonal_sign_ins_total", **labels) == 1
    refused = {"method": "password", "reason": "invalid_credentials"}
    assert seen.of("zonal_sign_ins_refused_total", **refused) == 2
