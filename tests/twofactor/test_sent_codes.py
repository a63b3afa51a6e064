"""Codes by text message and by e-mail: bound to their challenge, never a flood."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from io import StringIO

import pytest
import time_machine
from django.core.management import call_command
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from accounts.models import User
from common.crypto import decrypt
from environments.models import Organization
from outbox.models import Delivery
from tests import inbox
from tests.cast import signed_in
from tests.outbox.messages.support import run
from tests.ports import free_port
from tests.twofactor.holder import Holder, as_typed, ask, log_in, pending, reply
from tests.twofactor.sent_codes import enrolled, sent_code, set_up, verify
from twofactor.models import Challenge, Enrolment, Factor

pytestmark = pytest.mark.django_db
METHODS = ["sms", "email"]


@pytest.fixture(autouse=True)
def _with_sms(settings: Settings) -> None:
    settings.SMS_BACKEND = "file"


def other_than(code: str) -> str:
    return f"{(int(code) + 1) % 10**6:06d}"


@pytest.mark.parametrize("method", METHODS)
def test_setup_sends_a_code_and_returns_a_hint(alice: User, method: str) -> None:
    answer = set_up(signed_in(alice), method)
    hint = {"sms": ("phone_hint", "•••• 89"), "email": ("email_hint", "a•••@example.com")}[method]
    assert set(answer.body) == {"verification_id", "expires_at", hint[0], "delivery"}
    assert answer.body[hint[0]] == hint[1]
    assert answer.body["delivery"] == "queued"
    assert sent_code(method) not in answer.raw.content.decode()


@pytest.mark.parametrize("method", METHODS)
def test_the_code_activates_the_method(alice: User, method: str) -> None:
    status = enrolled(alice, method).get("/v1/auth/2fa/status").body
    assert status["enabled_methods"] == [method]
    assert status["phone_verified"] is (method == "sms")
    assert "factor_added" in inbox.notices_to("alice@example.com")


@pytest.mark.parametrize("method", METHODS)
def test_a_wrong_code_is_refused_and_five_end_the_set_up(alice: User, method: str) -> None:
    caller = signed_in(alice)
    begun = set_up(caller, method)
    code = sent_code(method)
    for _ in range(5):
        assert verify(caller, method, begun, other_than(code)).code == "invalid_code"
    assert verify(caller, method, begun, code).code == "enrolment_gone"


NO_CODES = [
    "",
    "12345",
    "1234567",
    "\u0661\u0662\u0663\u0664\u0665\u0666",
    "+12345",
    "-12345",
    "12 345",
    "123.456",
]


def test_the_user_is_told_that_a_factor_was_replaced(alice: User) -> None:
    caller = enrolled(alice, "email")
    begun = set_up(caller, "email")
    assert verify(caller, "email", begun, sent_code("email")).status == 200
    told = [name for name in inbox.notices_to("alice@example.com") if name.startswith("factor")]
    assert told == ["factor_added", "factor_replaced"]


@pytest.mark.parametrize("method", METHODS)
def test_a_code_is_read_as_people_type_it(alice: User, method: str) -> None:
    caller = signed_in(alice)
    begun = set_up(caller, method)
    assert verify(caller, method, begun, as_typed(sent_code(method))).status == 200
    challenge = ask(caller)
    assert reply(challenge, as_typed(sent_code(method))).status == 200


@pytest.mark.parametrize("method", METHODS)
def test_what_cannot_be_a_code_is_400_and_not_counted(alice: User, method: str) -> None:
    caller = signed_in(alice)
    begun = set_up(caller, method)
    for code in NO_CODES:
        assert verify(caller, method, begun, code).status == 400, code
    assert Enrolment.objects.get().attempts_left == 5
    assert verify(caller, method, begun, sent_code(method)).status == 200
    challenge = ask(caller)
    for code in NO_CODES:
        answer = reply(challenge, code)
        assert (answer.status, answer.code) == (400, "malformed_code"), code
    assert Challenge.objects.get().attempts_left == 5


@pytest.mark.parametrize("method", METHODS)
def test_signing_in_with_a_sent_code(alice: User, method: str) -> None:
    enrolled(alice, method)
    challenge = ask(pending(log_in()))
    assert challenge.body["delivery"] == "queued"
    assert challenge.body["delivery_hint"] == Factor.objects.get().hint
    assert reply(challenge, sent_code(method)).status == 200


@pytest.mark.parametrize("method", METHODS)
def test_two_requests_send_once(alice: User, method: str) -> None:
    enrolled(alice, method)
    caller = pending(log_in())
    before = Delivery.objects.count()
    first, second = ask(caller), ask(caller)
    assert first.body == second.body
    assert Delivery.objects.count() == before + 1


@pytest.mark.django_db(transaction=True)
def test_eight_parallel_requests_send_once(alice: User) -> None:
    enrolled(alice, "sms")
    caller = pending(log_in())
    before = Delivery.objects.filter(kind="sms").count()

    def once(_: int) -> str:
        try:
            return str(ask(caller).body["challenge_id"])
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(once, range(8)))) == 1
    assert Delivery.objects.filter(kind="sms").count() == before + 1


def test_a_code_sent_to_a_replaced_number_is_wrong(alice: User) -> None:
    caller = enrolled(alice, "sms")
    challenge = ask(pending(log_in()))
    to_the_old_number = inbox.sms_code()
    begun = caller.post("/v1/auth/2fa/sms/setup", {"phone_number": "+49 151 23456788"})
    assert verify(caller, "sms", begun, inbox.sms_code()).status == 200
    assert reply(challenge, to_the_old_number).code == "invalid_code"


@pytest.mark.parametrize("method", METHODS)
def test_the_code_of_one_challenge_fails_on_another(alice: User, method: str) -> None:
    enrolled(alice, method)
    ask(pending(log_in()))
    code = sent_code(method)
    second = ask(pending(log_in()))
    assert reply(second, code).code == "invalid_code"


@pytest.mark.parametrize(
    ("number", "code"),
    [
        ("0151 23456789", "no_country_code"),
        ("hello", "not_a_number"),
        ("+49 1", "not_a_number"),
        ("+999 123456789", "no_country_code"),
        ("+1 555 0100", "not_a_number"),
        # Premium rate, in a country and in none.
        ("+44 909 8790000", "not_texted"),
        ("+49 900 1234567", "not_texted"),
        ("+979 123456789", "not_texted"),
        # Satellite phones, a follow-me number, a free one.
        ("+881 612345678", "not_texted"),
        ("+870 773123456", "not_texted"),
        ("+44 70 1234 5678", "not_texted"),
        ("+800 12345678", "not_texted"),
    ],
)
def test_an_invalid_phone_number_is_refused_with_400_and_the_reason(
    alice: User, number: str, code: str
) -> None:
    answer = signed_in(alice).post("/v1/auth/2fa/sms/setup", {"phone_number": number})
    assert answer.status == 400
    assert (answer.body["errors"][0]["field"], answer.body["errors"][0]["code"]) == (
        "phone_number",
        code,
    )
    assert not Delivery.objects.exists()


@pytest.mark.parametrize("number", ["+33 6 12345678", "+1 202 555 0123", "+44 20 7946 0018"])
def test_mobile_and_landline_numbers_are_accepted(alice: User, number: str) -> None:
    answer = signed_in(alice).post("/v1/auth/2fa/sms/setup", {"phone_number": number})
    assert answer.status == 200


def test_without_an_sms_provider_a_503_names_the_other_methods(
    alice: User, settings: Settings
) -> None:
    settings.SMS_BACKEND = ""
    answer = set_up(signed_in(alice), "sms")
    assert (answer.status, answer.code) == (503, "channel_unavailable")
    assert answer.body["methods"] == ["totp", "email", "webauthn", "backup_code"]
    assert int(answer.headers["Retry-After"]) > 0
    Organization.objects.update(mfa_allowed_methods=["sms", "email"])
    assert set_up(signed_in(alice), "sms").body["methods"] == ["email"]


def test_after_removal_of_the_sms_provider_a_503_names_the_users_other_methods(
    alice: User, settings: Settings
) -> None:
    caller = enrolled(alice, "sms")
    codes = caller.post("/v1/auth/2fa/backup-codes", None).body["backup_codes"]
    settings.SMS_BACKEND = ""
    waiting = pending(log_in())
    answer = ask(waiting)
    assert (answer.status, answer.code) == (503, "channel_unavailable")
    assert answer.body["methods"] == ["backup_code"]
    assert reply(ask(waiting, "backup_code"), codes[0]).status == 200


def test_a_provider_that_is_down_delays_the_code_and_not_the_answer(
    alice: User, settings: Settings
) -> None:
    enrolled(alice, "sms")
    settings.SMS_BACKEND = "outbox.messages.sms.twilio.send"
    settings.SMS_OPTIONS = {
        "account": "AC1",
        "username": "AC1",
        "password": "x" * 32,
        "sender": "+15005550006",
        "base_url": f"http://127.0.0.1:{free_port()}",
        "timeout_s": 2,
    }
    challenge = ask(pending(log_in()))
    assert (challenge.status, challenge.body["delivery"]) == (200, "queued")
    delayed = run(Delivery.objects.filter(kind="sms").latest("created_at"))
    assert (delayed.state, delayed.attempts, delayed.error) == ("queued", 1, "twilio_away")
    assert delayed.next_attempt_at is not None
    shown = StringIO()
    call_command("deliveries", "--kind", "sms", "--json", stdout=shown)
    assert f'"error": "{delayed.error}"' in shown.getvalue()
    # It is the same challenge, once the message has come.
    assert reply(challenge, sent_code("sms")).status == 200


def test_codes_by_mail_follow_the_account_to_its_new_address(alice: User) -> None:
    """The old mailbox's present owner must not hold a second factor of hers."""
    enrolled(alice, "email")
    moved = {"email": "alice@new.example", "email_verified_at": timezone.now()}
    User.objects.filter(pk=alice.pk).update(**moved)
    challenge = ask(pending(log_in("alice@new.example")))
    assert challenge.body["delivery_hint"] == "a•••@new.example"
    assert inbox.messages("mail", "email_code")[-1]["to"] == "alice@new.example"
    assert reply(challenge, sent_code("email")).status == 200
    factor = Factor.objects.get(method="email")
    assert (decrypt(factor.secret), factor.hint) == ("alice@new.example", "a•••@new.example")


def test_codes_by_mail_are_not_sent_to_an_unverified_address(alice: User) -> None:
    enrolled(alice, "email")
    moved = {"email": "alice@new.example", "email_verified_at": None}
    User.objects.filter(pk=alice.pk).update(**moved)
    ask(pending(log_in("alice@new.example")))
    assert inbox.messages("mail", "email_code")[-1]["to"] == "alice@example.com"


def test_a_code_ends_after_ten_minutes(alice: User) -> None:
    enrolled(alice, "sms")
    challenge = ask(pending(log_in()))
    with time_machine.travel(timezone.now() + timedelta(minutes=10, seconds=1)):
        assert reply(challenge, sent_code("sms")).code == "challenge_gone"
    assert all(row.expires_at for row in Delivery.objects.filter(kind="sms"))


def test_the_number_is_encrypted(alice: User) -> None:
    enrolled(alice, "sms")
    assert "23456789" not in Factor.objects.get().secret
    assert "23456789" not in str(Delivery.objects.values_list("payload", "hint"))


def test_backup_codes_are_issued_for_any_factor(alice: User) -> None:
    caller = enrolled(alice, "sms")
    answer = caller.post("/v1/auth/2fa/backup-codes", None)
    assert len(answer.body["backup_codes"]) == 10


def test_a_code_for_setting_up_answers_no_challenge(holder: Holder) -> None:
    set_up(holder.caller, "email")
    challenge = ask(pending(log_in()), "totp")
    assert reply(challenge, sent_code("email")).code == "invalid_code"
