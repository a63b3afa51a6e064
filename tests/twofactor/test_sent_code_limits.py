"""Limits of codes by text message and e-mail: of receivers, organizations, the installation."""

from dataclasses import replace

import pytest
from pytest_django import Settings

from accounts.models import User
from outbox.models import Delivery
from tests.cast import signed_in
from tests.twofactor.holder import ask, log_in, pending, reply
from tests.twofactor.sent_codes import enrolled, sent_code, set_up

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _with_sms(settings: Settings) -> None:
    settings.SMS_BACKEND = "file"


def test_messages_to_one_receiver_are_limited(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accounts.signin.mailbox_proofs.SENDS_PER_RECEIVER", 2)
    caller = signed_in(alice)
    assert set_up(caller, "sms").status == 200
    assert set_up(caller, "sms").status == 200
    answer = set_up(caller, "sms")
    assert (answer.status, answer.code) == (429, "sending_too_often")
    assert 0 < int(answer.headers["Retry-After"]) <= 86400
    assert Delivery.objects.count() == 2


def test_messages_of_one_organization_are_limited(
    alice: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twofactor.sent_codes.SENDS_PER_ORGANIZATION", 1)
    assert set_up(signed_in(alice), "email").status == 200
    assert set_up(signed_in(bob), "email").code == "sending_too_often"


def test_messages_from_one_network_address_are_limited(
    alice: User, charlie: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attacker who earns by messages to their numbers signs up again and again."""
    monkeypatch.setattr("twofactor.sent_codes.SENDS_PER_ADDRESS", 2)
    assert set_up(signed_in(alice), "sms").status == 200
    assert set_up(signed_in(charlie), "sms").status == 200
    assert set_up(signed_in(charlie), "sms").code == "sending_too_often"


def test_text_messages_of_the_installation_are_limited(
    alice: User, charlie: User, settings: Settings
) -> None:
    """An attacker has as many accounts, numbers and network addresses as they like."""
    settings.TWOFACTOR = replace(settings.TWOFACTOR, texts_per_day=1)
    enrolled(alice, "sms")
    answer = signed_in(charlie).post("/v1/auth/2fa/sms/setup", {"phone_number": "+33 6 12345678"})
    assert (answer.status, answer.code) == (429, "sending_too_often")
    # Mails cost nothing, and sign-ins are counted separately.
    assert set_up(signed_in(charlie), "email").status == 200
    assert ask(pending(log_in())).status == 200
    assert ask(pending(log_in())).code == "sending_too_often"
    assert Delivery.objects.filter(kind="sms").count() == 2


def test_a_refused_text_message_does_not_count_for_the_installation(
    alice: User, charlie: User, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TWOFACTOR = replace(settings.TWOFACTOR, texts_per_day=2)
    monkeypatch.setattr("accounts.signin.mailbox_proofs.SENDS_PER_RECEIVER", 1)
    assert [set_up(signed_in(charlie), "sms").status for _ in range(4)] == [200, 429, 429, 429]
    answer = signed_in(alice).post("/v1/auth/2fa/sms/setup", {"phone_number": "+33 6 12345678"})
    assert answer.status == 200


def test_one_account_cannot_have_codes_sent_to_any_number_of_numbers(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounts.signin.mailbox_proofs.SENDS_PER_RECEIVER", 2)
    caller = signed_in(alice)
    numbers = [f"+49 151 2345678{last}" for last in range(3)]
    sent = [caller.post("/v1/auth/2fa/sms/setup", {"phone_number": each}) for each in numbers]
    assert [answer.status for answer in sent] == [200, 200, 429]


def test_only_numbers_of_allowed_countries_get_codes(
    alice: User, charlie: User, settings: Settings
) -> None:
    enrolled(alice, "sms")
    settings.TWOFACTOR = replace(settings.TWOFACTOR, sms_countries=frozenset({"FR", "US"}))
    stranger = signed_in(charlie)
    answer = set_up(stranger, "sms")
    assert (answer.status, answer.body["errors"][0]["code"]) == (400, "country_not_texted")
    # Jamaica has the country code of the United States.
    jamaica = stranger.post("/v1/auth/2fa/sms/setup", {"phone_number": "+1 876 555 1234"})
    assert jamaica.status == 400
    for number in ("+33 6 12345678", "+1 202 555 0123"):
        assert stranger.post("/v1/auth/2fa/sms/setup", {"phone_number": number}).status == 200
    # A factor that was set up before the operator left the country out.
    before = Delivery.objects.filter(kind="sms").count()
    assert ask(pending(log_in())).code == "channel_unavailable"
    assert Delivery.objects.filter(kind="sms").count() == before


def test_an_attacker_cannot_use_up_the_sign_in_codes_of_a_number(
    alice: User, charlie: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounts.signin.mailbox_proofs.SENDS_PER_RECEIVER", 2)
    enrolled(alice, "sms")
    stranger = signed_in(charlie)
    statuses = [set_up(stranger, "sms").status for _ in range(4)]
    assert statuses == [200, 429, 429, 429]
    assert reply(ask(pending(log_in())), sent_code("sms")).status == 200


def test_a_refused_sending_uses_nothing_of_the_receivers_cap_up(
    alice: User, charlie: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twofactor.sent_codes.SENDS_PER_ORGANIZATION", 1)
    monkeypatch.setattr("accounts.signin.mailbox_proofs.SENDS_PER_RECEIVER", 2)
    stranger = signed_in(charlie)
    statuses = [set_up(stranger, "sms").status for _ in range(4)]
    assert statuses == [200, 429, 429, 429]
    assert set_up(signed_in(alice), "sms").status == 200
