"""Known and unknown addresses: the same status, shape, queries and hashes."""

import ipaddress
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from accounts import passwords
from accounts.models import User
from outbox.models import Delivery
from recovery.models import Method, Purpose, Recovery
from tests.cast import PASSWORD, Answer, Caller, member
from tests.queries import statements
from tests.recovery.support import (
    PREFIX,
    initiate,
    jobs,
    log_in,
    mailed_token,
    sent,
    verify,
    with_factor,
    without_id,
    work,
)
from tests.twofactor.holder import Holder, ask, pending

pytestmark = pytest.mark.django_db

NOBODY = "nobody@example.com"


def claims(alice: User, charlie: User) -> list[tuple[int, str]]:
    """Return claims: Alice, an unknown user, Alice elsewhere, a disabled user."""
    disabled = member(alice.organization, "dora@example.com")
    User.objects.filter(pk=disabled.pk).update(is_active=False)
    return [
        (alice.organization_id, alice.email),
        (alice.organization_id, NOBODY),
        (charlie.organization_id, alice.email),
        (987654321, alice.email),
        (alice.organization_id, disabled.email),
    ]


def start(org_id: int, email: str, **more: Any) -> Answer:
    body = {"org_id": org_id, "email": email, "method": "email"}
    return Caller().post(f"{PREFIX}/initiate", body | more)


@pytest.mark.parametrize("method", Method.values)
@pytest.mark.parametrize("purpose", Purpose.values)
def test_unknown_and_known_addresses_get_the_same_response(
    alice: User, charlie: User, hashes: list[str], method: str, purpose: str
) -> None:
    seen = []
    for org_id, email in claims(alice, charlie):
        hashes.clear()
        with CaptureQueriesContext(connection) as captured:
            answer = start(org_id, email, method=method, purpose=purpose)
        shape = {key: type(value).__name__ for key, value in answer.body.items()}
        seen.append((answer.status, shape, statements(captured), len(hashes)))
    assert all(one == seen[0] for one in seen)
    assert seen[0][0] == 202
    assert seen[0][3] == 0


def test_a_guessed_token_does_not_reveal_whether_an_account_exists(alice: User) -> None:
    known, unknown = initiate(alice), initiate(email=NOBODY, org_id=alice.organization_id)
    for _ in range(6):
        first, second = verify(known, "0" * 26), verify(unknown, "0" * 26)
        assert first.status == second.status
        assert without_id(first) == without_id(second)
    assert second.code == "recovery_gone"


def test_the_same_queries_are_made_for_a_wrong_token(alice: User) -> None:
    counts = []
    for started in (initiate(alice), initiate(email=NOBODY, org_id=alice.organization_id)):
        with CaptureQueriesContext(connection) as captured:
            verify(started, "0" * 26)
        counts.append(statements(captured))
    assert counts[0] == counts[1]


def test_mail_is_sent_only_to_an_active_member_of_the_named_organization(
    alice: User, charlie: User
) -> None:
    for org_id, email in claims(alice, charlie):
        start(org_id, email)
    work()
    assert [mail["to"] for mail in sent("recovery_token")] == [alice.email]
    assert Delivery.objects.count() == 1


def test_an_address_is_found_whatever_its_case(alice: User) -> None:
    initiate(email="ALICE@Example.com", org_id=alice.organization_id)
    # To the address that is kept, never to the one that was typed.
    assert [mail["to"] for mail in sent("recovery_token")] == [alice.email]


def test_nothing_is_sent_for_a_method_that_the_user_does_not_have(alice: User, sms: None) -> None:
    assert initiate(alice, method="sms").status == 202
    assert initiate(alice, purpose="second_factor").status == 202
    assert not Delivery.objects.exists()


def test_the_job_has_only_an_id_and_the_row_no_claim(alice: User) -> None:
    start(alice.organization_id, alice.email)
    row = Recovery.objects.get()
    assert jobs() == [{"recovery_id": str(row.pk)}]
    assert alice.email not in row.request
    work()
    assert Recovery.objects.get().request == ""


def test_the_recovery_id_is_not_stored_in_clear(alice: User) -> None:
    started = initiate(alice)
    row = vars(Recovery.objects.get())
    assert started.body["recovery_id"] not in str(row)
    assert mailed_token() not in str(row)


def test_recoveries_from_one_network_address_are_limited(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recovery.steps.initiation.STARTS_PER_ADDRESS", 2)
    initiate(alice)
    initiate(email=NOBODY)
    answer = initiate(alice)
    assert (answer.status, answer.code) == (429, "too_many_attempts")
    assert int(answer.headers["Retry-After"]) > 0


@pytest.mark.parametrize("email", ["alice@example.com", NOBODY])
def test_recoveries_of_one_account_are_limited_per_day_whether_it_exists_or_not(
    alice: User, email: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recovery.channels.STARTS_PER_ACCOUNT", 2)
    for spelling in (email, email.upper()):
        assert initiate(email=spelling, org_id=alice.organization_id).status == 202
    answer = initiate(email=email, org_id=alice.organization_id)
    assert (answer.status, answer.code) == (429, "recovery_too_often")
    assert int(answer.headers["Retry-After"]) > 0


@pytest.mark.parametrize("email", ["alice@example.com", NOBODY])
def test_an_attacker_does_not_use_up_an_accounts_recoveries_from_one_network(
    alice: User, settings: Settings, email: str
) -> None:
    settings.TRUSTED_PROXIES = (ipaddress.ip_network("127.0.0.0/8"),)
    body = {"org_id": alice.organization_id, "email": email, "method": "email"}
    stranger = Caller(headers={"X_FORWARDED_FOR": "203.0.113.7"})
    answers = [stranger.post(f"{PREFIX}/initiate", body) for _ in range(7)]
    assert [answer.status for answer in answers] == [202] * 5 + [429] * 2
    assert answers[-1].code == "recovery_too_often"
    owner = Caller(headers={"X_FORWARDED_FOR": "198.51.100.7"})
    assert owner.post(f"{PREFIX}/initiate", body).status == 202


def test_strangers_do_not_use_up_the_recoveries_of_the_owners_devices(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recovery.channels.STARTS_PER_ACCOUNT", 2)
    monkeypatch.setattr("recovery.channels.STARTS_FROM_KNOWN_DEVICES", 2)
    User.objects.filter(pk=alice.pk).update(password=passwords.hash_password(PASSWORD))
    firefox = Caller(headers={"USER_AGENT": "Mozilla/5.0 (X11; Linux) Firefox/140.0"})
    assert (
        firefox.post("/v1/auth/login", {"email": alice.email, "password": PASSWORD}).status == 200
    )
    stranger = Caller(headers={"USER_AGENT": "other/1.0"})
    body = {"email": alice.email, "method": "email"}
    statuses = [stranger.post(f"{PREFIX}/initiate", body).status for _ in range(3)]
    assert statuses == [202, 202, 429]
    answers = [firefox.post(f"{PREFIX}/initiate", body) for _ in range(3)]
    assert [answer.status for answer in answers] == [202, 202, 429]
    assert answers[-1].code == "recovery_too_often"
    work()
    assert len(sent("recovery_token", to=alice.email)) == 4


def test_the_address_alone_decides(alice: User) -> None:
    answer = Caller().post(f"{PREFIX}/initiate", {"email": alice.email, "method": "email"})
    assert answer.status == 202
    work()
    started = {"recovery_id": answer.body["recovery_id"], "token": mailed_token(to=alice.email)}
    assert Caller().post(f"{PREFIX}/verify", started).status == 200


def test_a_claim_with_and_without_the_organization_shares_a_limit(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recovery.channels.STARTS_PER_ACCOUNT", 2)
    for org_id in (alice.organization_id, 999_999):
        assert initiate(email=alice.email, org_id=org_id).status == 202
    answer = Caller().post(f"{PREFIX}/initiate", {"email": alice.email, "method": "email"})
    assert answer.code == "recovery_too_often"


def test_recoveries_do_not_use_up_the_codes_of_an_e_mail_factor(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounts.signin.mailbox_proofs.SENDS_PER_RECEIVER", 1)
    with_factor(alice, "email", alice.email)
    for _ in range(2):
        initiate(alice)
    assert len(sent("recovery_token")) == 2
    assert ask(pending(log_in(alice))).status == 200


def test_malformed_requests_are_refused_with_400(anyone: Caller) -> None:
    body = {"org_id": 1, "email": "alice@example.com", "method": "email"}
    wrong: list[dict[str, Any]] = [
        {"org_id": "home"},
        {"org_id": 0},
        {"org_id": 2**63},
        {"email": "nobody"},
        {"email": "nul\0@example.com"},
        {"method": "carrier_pigeon"},
        {"purpose": "fame"},
        {"organization": 1},
    ]
    for change in wrong:
        answer = anyone.post(f"{PREFIX}/initiate", body | change)
        assert (answer.status, answer.code) == (400, "invalid_request"), change
        assert answer.body["errors"][0]["field"] in change
    assert not Recovery.objects.exists()


def test_verifying_a_token_hashes_no_password(
    alice: User, holder: Holder, hashes: list[str]
) -> None:
    with_factor(alice, "email", alice.email)
    started = initiate(alice)
    verify(started, mailed_token())
    assert hashes == []
