"""A sign-in from a new device is mailed, audited and an event; one from a known device is not."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone

from accounts.models import KnownDevice, User
from accounts.sessions import known_devices
from audit.models import AuditEvent
from tests import inbox
from tests.accounts.profile.support import signed_up, user_of
from tests.cast import PASSWORD, Caller, signed_in
from tests.outbox.webhooks.support import emitted, subscribe
from tests.recovery.support import complete, proven

pytestmark = pytest.mark.django_db
EMAIL = "alice@example.com"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
NEWER = FIREFOX.replace("140", "141")
CHROME = "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/140.0.0.0 Safari/537.36"
HOME, NEIGHBOUR, AWAY = "198.51.100.7", "198.51.100.99", "203.0.113.7"


def log_in(agent: str, password: str = PASSWORD) -> int:
    body = {"email": EMAIL, "password": password}
    return Caller().call("POST", "/v1/auth/login", body, USER_AGENT=agent).status


@pytest.fixture(autouse=True)
def addresses(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return where the next requests come from."""
    here = {"address": HOME}
    monkeypatch.setattr("accounts.sessions.sessions.client_address", lambda _: here["address"])
    return here


@pytest.fixture
def alice(addresses: dict[str, str]) -> User:
    """Return a user who signed up with Firefox at home."""
    body = {"email": EMAIL, "password": PASSWORD}
    assert Caller().call("POST", "/v1/auth/signup", body, USER_AGENT=FIREFOX).status == 201
    return user_of(EMAIL)


def mails() -> list[dict[str, Any]]:
    return inbox.messages("mail", "new_device")


def test_the_first_sign_in_and_those_from_known_devices_send_nothing(
    alice: User, addresses: dict[str, str]
) -> None:
    assert log_in(FIREFOX) == 200
    assert log_in(NEWER) == 200
    addresses["address"] = NEIGHBOUR
    assert log_in(NEWER) == 200
    assert mails() == []
    assert not AuditEvent.objects.filter(tag="api:session:new_device").exists()


def test_another_program_or_network_is_told_once_with_what_where_and_when(
    alice: User, addresses: dict[str, str]
) -> None:
    subscribe(alice.organization_id, "session.new_device")
    addresses["address"] = AWAY
    for _ in range(2):
        assert log_in(CHROME) == 200
    (mail,) = mails()
    assert mail["to"] == EMAIL
    context = mail["context"]
    assert (context["agent"], context["address"]) == ("Chrome on Windows", "203.0.113.0/24")
    assert context["environment"] == "live"
    assert context["sessions_link"].endswith("/console/account")
    assert context["at"].endswith("UTC")
    ((event, data),) = emitted()
    assert event == "session.new_device"
    assert data == {
        "user_id": str(alice.pk),
        "email": EMAIL,
        "agent": "Chrome on Windows",
        "network": "203.0.113.0/24",
        "environment": "live",
    }
    audited = AuditEvent.objects.get(tag="api:session:new_device")
    assert (audited.actor_id, audited.outcome) == (alice.pk, "success")


def test_a_switch_from_a_new_device_is_told_once_as_a_sign_in_is(
    alice: User, addresses: dict[str, str]
) -> None:
    body = {"email": EMAIL, "password": PASSWORD}
    pair = Caller().call("POST", "/v1/auth/login", body, USER_AGENT=FIREFOX).body

    def switch(environment: str, agent: str) -> None:
        asked = {"refresh_token": pair["refresh_token"], "environment": environment}
        asked["keep_current"] = True
        assert Caller().post("/v1/auth/switch", asked, USER_AGENT=agent).status == 200

    switch("sandbox", FIREFOX)
    assert mails() == []
    addresses["address"] = AWAY
    for _ in range(2):
        switch("sandbox", CHROME)
    (mail,) = mails()
    context = mail["context"]
    assert (context["agent"], context["environment"]) == ("Chrome on Windows", "sandbox")
    assert AuditEvent.objects.filter(tag="api:session:new_device").count() == 1


def test_a_refresh_from_elsewhere_is_seen_and_told_once_as_a_sign_in_is(
    alice: User, addresses: dict[str, str]
) -> None:
    body = {"email": EMAIL, "password": PASSWORD}
    pair = Caller().call("POST", "/v1/auth/login", body, USER_AGENT=FIREFOX).body
    subscribe(alice.organization_id, "session.new_device")

    def refresh(agent: str) -> dict[str, Any]:
        asked = {"refresh_token": pair["refresh_token"]}
        answer = Caller().post("/v1/auth/refresh", asked, USER_AGENT=agent)
        assert answer.status == 200
        pair.update(answer.body)
        listed = Caller(pair["access_token"]).get("/v1/auth/sessions").body["results"]
        (found,) = [row for row in listed if row["current"]]
        return dict(found)

    assert refresh(FIREFOX)["agent"] == FIREFOX
    addresses["address"] = NEIGHBOUR
    assert refresh(NEWER)["address"] == NEIGHBOUR
    assert mails() == []
    addresses["address"] = AWAY
    for _ in range(2):
        listed = refresh(CHROME)
        assert (listed["address"], listed["agent"]) == (AWAY, CHROME)
    (mail,) = mails()
    context = mail["context"]
    assert (context["agent"], context["address"]) == ("Chrome on Windows", "203.0.113.0/24")
    assert context["environment"] == "live"
    assert [event for event, _ in emitted()] == ["session.new_device"]
    assert AuditEvent.objects.filter(tag="api:session:new_device").count() == 1
    # The owner's own device stays known.
    addresses["address"] = NEIGHBOUR
    assert refresh(FIREFOX)["agent"] == FIREFOX
    assert len(mails()) == 1


def test_refreshes_under_ever_new_names_add_a_limited_number_of_rows(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounts.sessions.refresh.NEW_SOURCES_PER_HOUR", 3)
    body = {"email": EMAIL, "password": PASSWORD}
    # Later than what the fixtures made, and no hour ends meanwhile.
    later = (timezone.now() + timedelta(hours=1)).replace(minute=30)
    with time_machine.travel(later, tick=False):
        pair = Caller().call("POST", "/v1/auth/login", body, USER_AGENT=FIREFOX).body
        before = KnownDevice.objects.count()
        for number in range(6):
            asked = {"refresh_token": pair["refresh_token"]}
            agent = f"Robot-{number}"
            pair = Caller().post("/v1/auth/refresh", asked, USER_AGENT=agent).body
    assert KnownDevice.objects.count() == before + 3
    assert AuditEvent.objects.filter(tag="api:session:new_device").count() == 3


def test_at_most_three_mails_an_hour_but_every_one_is_audited(
    alice: User, addresses: dict[str, str]
) -> None:
    with time_machine.travel(timezone.now().replace(minute=30), tick=False):
        for number in range(5):
            addresses["address"] = f"192.0.{number}.1"
            assert log_in(CHROME) == 200
    assert len(mails()) == 3
    assert AuditEvent.objects.filter(tag="api:session:new_device").count() == 5


def test_a_refused_sign_in_makes_no_device_known(alice: User, addresses: dict[str, str]) -> None:
    addresses["address"] = AWAY
    assert log_in(CHROME, "a wrong password") == 401
    assert mails() == []
    assert log_in(CHROME) == 200
    assert len(mails()) == 1


def test_accounts_from_before_devices_were_noted_are_told_by_their_sessions(
    alice: User, addresses: dict[str, str]
) -> None:
    KnownDevice.objects.all().delete()
    assert log_in(FIREFOX) == 200
    assert mails() == []
    KnownDevice.objects.all().delete()
    addresses["address"] = AWAY
    assert log_in(CHROME) == 200
    assert len(mails()) == 1


def test_devices_of_an_attacker_who_signed_up_first_are_not_the_owners(
    addresses: dict[str, str],
) -> None:
    addresses["address"] = AWAY
    signed_up(EMAIL)
    assert complete(proven(user_of(EMAIL)), password="the owner's own words").status == 204
    mine = KnownDevice.objects.filter(user=user_of(EMAIL))
    assert not mine.exists()
    addresses["address"] = HOME
    assert log_in(FIREFOX, "the owner's own words") == 200
    assert mine.count() == 1
    # The attacker's device is a new one.
    addresses["address"] = AWAY
    assert log_in("", "the owner's own words") == 200
    assert len(mails()) == 1


@pytest.mark.parametrize(
    ("agent", "program"),
    [
        (FIREFOX, "Firefox on Linux"),
        (CHROME, "Chrome on Windows"),
        ("curl/8.5.0", "curl"),
        ("python-requests/2.32", "python-requests"),
        ("", "an unknown program"),
        ("<b>Click http://evil.example</b>", "an unknown program"),
        ("Your account is locked, call 0190 666", "Your"),
    ],
)
def test_a_programs_own_words_never_reach_the_mail(agent: str, program: str) -> None:
    assert known_devices.program_of(agent) == program


# --- guesses at the password


def guess_until_slowed(agent: str) -> None:
    for _ in range(5):
        assert log_in(agent, "a wrong password") == 401


def test_an_attacker_elsewhere_does_not_throttle_the_owner_on_a_known_device(
    alice: User, addresses: dict[str, str]
) -> None:
    with time_machine.travel(timezone.now(), tick=False):
        addresses["address"] = AWAY
        guess_until_slowed(FIREFOX)
        assert log_in(FIREFOX) == 401
        addresses["address"] = NEIGHBOUR
        assert log_in(CHROME) == 401
        assert [log_in(NEWER) for _ in range(6)] == [200] * 6
        # The attacker stays throttled.
        addresses["address"] = AWAY
        assert log_in(FIREFOX) == 401


def test_an_attacker_does_not_keep_the_owner_from_confirming_the_password(
    alice: User, addresses: dict[str, str]
) -> None:
    owner = signed_in(alice)
    addresses["address"] = AWAY
    guess_until_slowed(CHROME)
    addresses["address"] = HOME
    answer = owner.post("/v1/auth/reauthenticate", {"password": PASSWORD}, USER_AGENT=FIREFOX)
    assert answer.status == 204


def test_guesses_from_a_known_device_are_slowed_too(alice: User) -> None:
    with time_machine.travel(timezone.now(), tick=False) as clock:
        guess_until_slowed(FIREFOX)
        guess_until_slowed(FIREFOX)
        assert log_in(FIREFOX) == 401
        clock.shift(timedelta(seconds=2))
        assert log_in(FIREFOX) == 200


def test_devices_are_forgotten_after_half_a_year(alice: User) -> None:
    now = timezone.now()
    assert known_devices.delete_old(now=now + timedelta(days=179)) == 0
    assert known_devices.delete_old(now=now + timedelta(days=181)) == 1
